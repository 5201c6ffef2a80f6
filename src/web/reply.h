// Replies of the TCP server: every one has the headers that keep a browser from doing more with it
// than to show it. Also who is refused, and how.
//
// Thread safety: pure.
#pragma once

#include <boost/beast/http.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "serve/loop.h"
#include "web/access.h"

namespace stepscope::web {

using Response = boost::beast::http::response<boost::beast::http::string_body>;
using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;

// Of the request that outlives it.
Credentials credentials(const HttpRequest& request);
std::string_view path_of(std::string_view target);

Response answer(const serve::Reply& reply, bool keep_alive);
Response refuse(int status, const std::string& what, const std::string& hint, bool keep_alive);

// Why the request gets nothing: 403 for a foreign Host or Origin, 401 without the token. The notice
// is the same for every path. Absent: it may come in.
std::optional<Response> problem_of(const Access& access, const Credentials& from);

}  // namespace stepscope::web
