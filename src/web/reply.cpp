#include "web/reply.h"

#include "serve/request.h"

namespace stepscope::web {
namespace http = boost::beast::http;
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view header(const HttpRequest& request, http::field field) {
  const auto value = request[field];
  return {value.data(), value.size()};
}

}  // namespace

Credentials credentials(const HttpRequest& request) {
  const auto target = request.target();
  return {.host = header(request, http::field::host),
          .origin = header(request, http::field::origin),
          .cookie = header(request, http::field::cookie),
          .authorization = header(request, http::field::authorization),
          .target = {target.data(), target.size()}};
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

Response answer(const serve::Reply& reply, bool keep_alive) {
  Response response(static_cast<http::status>(reply.status), 11);
  response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  response.set("Content-Security-Policy", kPolicy);
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Cross-Origin-Opener-Policy", "same-origin");
  response.keep_alive(keep_alive);
  response.body() = reply.body;
  response.prepare_payload();
  return response;
}

Response refuse(int status, const std::string& what, const std::string& hint, bool keep_alive) {
  return answer(serve::error_reply(status, what, hint), keep_alive);
}

std::optional<Response> problem_of(const Access& access, const Credentials& from) {
  if (!access.host_fits(from))
    return refuse(403, "this server is not known by that name",
                  "start it with --allow-host NAME for the name in the browser's address", false);
  if (!access.origin_fits(from))
    return refuse(403, "the request comes from a page of another place", "", false);
  if (access.has_cookie_or_bearer(from)) return std::nullopt;
  Response response =
      refuse(401, "this needs the token",
             "open the address with ?token= that stepscope printed at its start; scripts send "
             "Authorization: Bearer TOKEN",
             false);
  response.set(http::field::www_authenticate, "Bearer");
  return response;
}

}  // namespace stepscope::web
