// Arguments about the page and its server, checked.
//
// Thread safety: reentrant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/tls.h"
#include "web/push.h"

namespace stepscope::cli {

struct ServeFlags {
  std::string listen, token_file, tls_cert, tls_key;
  std::vector<std::string> allow_host;
  std::string otlp, remote_write;
  bool no_rank_metrics = false;
  bool any_push() const { return !otlp.empty() || !remote_write.empty(); }
};
// Without --token-file and --tls-...: `run` has those of its hub already.
void add_listen_flags(CLI::App& app, ServeFlags& flags);
void add_token_and_tls_flags(CLI::App& app, ServeFlags& flags);
void add_metrics_flags(CLI::App& app, ServeFlags& flags);

struct ServePlan {
  hub::Endpoint listen;
  std::vector<std::string> hosts;  // besides this machine's own
  std::string token;
  bool token_is_known = false;  // from a file: it is not printed
  std::string tls_cert, tls_key;
  bool rank_metrics = true;
  std::vector<web::PushTarget> pushes;
};
// An Error is wrong use.
Result<ServePlan> check_serve_flags(const ServeFlags& flags);
Result<hub::TlsContext> tls_of(const ServePlan& plan);  // empty: plain

// What to open in a browser, with the token unless it came from a file.
std::string page_url(const ServePlan& plan, uint16_t port);

}  // namespace stepscope::cli
