#include "cli/json.h"

#include <boost/json.hpp>

namespace stepscope::cli {
namespace json = boost::json;

std::string json_array(const std::vector<std::string>& words) {
  json::array out;
  for (const std::string& word : words) out.emplace_back(word);
  return json::serialize(out);
}

std::string json_object(const std::map<std::string, std::string>& values) {
  json::object out;
  for (const auto& [key, value] : values) out[key] = value;
  return json::serialize(out);
}

std::vector<std::string> parse_json_array(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  std::vector<std::string> words;
  if (error || !value.is_array()) return words;
  for (const json::value& word : value.get_array())
    if (word.is_string()) words.emplace_back(word.get_string().c_str(), word.get_string().size());
  return words;
}

std::map<std::string, std::string> parse_json_object(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  std::map<std::string, std::string> values;
  if (error || !value.is_object()) return values;
  for (const auto& [key, word] : value.get_object())
    if (word.is_string())
      values[std::string(key)] = std::string(word.get_string().c_str(), word.get_string().size());
  return values;
}

}  // namespace stepscope::cli
