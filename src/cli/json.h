// The little JSON that the command line itself reads and writes; summaries are report's.
//
// Thread safety: reentrant. Parsers take any bytes: what is not of the expected kind is left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::cli {

std::string json_array(const std::vector<std::string>& words);
std::string json_object(const std::map<std::string, std::string>& values);
std::vector<std::string> parse_json_array(std::string_view text);
std::map<std::string, std::string> parse_json_object(std::string_view text);

}  // namespace stepscope::cli
