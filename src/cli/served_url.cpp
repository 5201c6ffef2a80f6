#include "cli/served_url.h"

#include <boost/beast/http.hpp>
#include <boost/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "hub/token.h"
#include "serve/request.h"
#include "web/access.h"
#include "web/http_client.h"

namespace stepscope::cli {
namespace {

constexpr const char* kRuns = "/v1/runs";
constexpr uint64_t kMaxReply = 64 << 20;

std::string text_at(const boost::json::value& object, const char* key) {
  const auto* fields = object.if_object();
  const auto* value = fields == nullptr ? nullptr : fields->if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

}  // namespace

void add_url_flags(CLI::App& app, UrlFlags& flags) {
  app.add_option("--token-file", flags.token_file, "With a URL: file with the token")
      ->option_text("FILE");
  app.add_option("--ca", flags.ca, "With https: who signed the certificate, PEM")
      ->option_text("FILE");
}

bool is_url(const std::string& run) {
  return run.starts_with("http://") || run.starts_with("https://");
}

Result<ServedUrl> ServedUrl::find(const std::string& text, const UrlFlags& flags) {
  const auto url = web::parse_url(text);
  const size_t runs = std::string_view(kRuns).size();
  std::string path = url ? url->path : "";
  while (path.ends_with('/')) path.pop_back();
  const bool named =
      path.starts_with(std::string(kRuns) + "/") && path.find('/', runs + 1) == std::string::npos;
  if (!url || (!path.empty() && !named))
    return Error{"this is not the URL of a run that is served",
                 "as it was printed: stepscope status 'http://127.0.0.1:PORT/?token=TOKEN'"};
  ServedUrl out;
  out.where_ = url->where;
  out.token_ = serve::query_words(url->query)["token"];
  if (!flags.token_file.empty()) {
    auto token = hub::read_token(absolute_path(flags.token_file));
    if (!token) return token.error();
    out.token_ = std::move(token->secret);
  }
  for (const char c : out.token_)
    if (c <= ' ' || c > '~') return Error{"the token holds letters that no token has", ""};
  if (url->where.tls) {
    auto tls = hub::make_node_tls({.ca_file = flags.ca, .pin = ""}, url->where);
    if (!tls) return tls.error();
    out.tls_ = std::move(*tls);
  }
  out.base_ = path;
  if (named) return out;
  const auto body = out.get(kRuns);
  if (!body) return body.error();
  boost::json::error_code failed;
  const boost::json::value list = boost::json::parse(*body, failed);
  const auto* fields = failed ? nullptr : list.if_object();
  const auto* rows = fields == nullptr ? nullptr : fields->if_contains("runs");
  if (rows == nullptr || !rows->is_array() || rows->get_array().empty())
    return Error{hub::url_of(out.where_) + " serves no run",
                 "record one there: stepscope run python train.py"};
  out.base_ = std::string(kRuns) + "/" + text_at(rows->get_array().front(), "key");
  return out;
}

Result<std::string> ServedUrl::get(const std::string& target) const {
  namespace http = boost::beast::http;
  web::ClientRequest request(http::verb::get, target, 11);
  request.set(http::field::authorization, "Bearer " + token_);
  auto reply =
      web::fetch(where_, std::move(request), tls_, {.time = kWait, .max_reply_bytes = kMaxReply});
  const std::string here = hub::url_of(where_);
  if (!reply)
    return Error{here + " does not answer: " + reply.error().message,
                 "a run's page ends with the run; past runs: stepscope serve"};
  if (reply->status == 401)
    return Error{here + " wants another token",
                 "give the whole URL that was printed, ?token=... included, or --token-file FILE"};
  if (reply->status != 200) {
    boost::json::error_code failed;
    const boost::json::value said = boost::json::parse(reply->body, failed);
    const std::string why = failed ? "" : printable(text_at(said, "error"), 300);
    return Error{here + " answers with status " + std::to_string(reply->status) +
                     (why.empty() ? "" : ": " + why),
                 failed ? "" : printable(text_at(said, "hint"), 300)};
  }
  return std::move(reply->body);
}

Result<std::string> ServedUrl::ask(const std::string& what) const {
  return get(base_ + "/" + what);
}

Result<bool> ServedUrl::is_live() const {
  const auto body = ask("health");
  if (!body) return body.error();
  boost::json::error_code failed;
  const boost::json::value health = boost::json::parse(*body, failed);
  return !failed && text_at(health, "state") == "live";
}

}  // namespace stepscope::cli
