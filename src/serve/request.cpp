#include "serve/request.h"

#include <boost/json.hpp>

#include "base/text.h"

namespace stepscope::serve {
namespace json = boost::json;
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> query_words(std::string_view query) {
  std::map<std::string, std::string> words;
  for (const std::string_view word : split(query, '&')) {
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    words[decoded(word.substr(0, equals))] =
        equals == std::string_view::npos ? "" : decoded(word.substr(equals + 1));
  }
  return words;
}

Reply error_reply(int status, const std::string& what, const std::string& hint) {
  return {status, "application/json",
          json::serialize(json::object{{"error", what}, {"hint", hint}}) + "\n"};
}

}  // namespace stepscope::serve
