// The words of a request's query, and the reply that says what is wrong: for the API on the Unix
// socket and for the server of the page.
//
// Thread safety: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "serve/loop.h"

namespace stepscope::serve {

// "a=1&b=x%20y": keys and values, decoded. A key that comes twice has its last value.
std::map<std::string, std::string> query_words(std::string_view query);

// JSON, {"error": what, "hint": hint}.
Reply error_reply(int status, const std::string& what, const std::string& hint);

}  // namespace stepscope::serve
