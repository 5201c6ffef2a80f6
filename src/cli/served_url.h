// A run that somebody serves, by the URL that was printed there: RUN of status and show.
//
// Thread safety: one owner. Waits at most kWait for an answer.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "base/result.h"
#include "hub/endpoint.h"
#include "hub/tls.h"

namespace stepscope::cli {

struct UrlFlags {
  std::string token_file, ca;
};
void add_url_flags(CLI::App& app, UrlFlags& flags);

bool is_url(const std::string& run);

class ServedUrl {
 public:
  static constexpr std::chrono::milliseconds kWait{10'000};

  // http(s)://HOST[:PORT][/v1/runs/KEY][/?token=T]; without a key the newest run there.
  static Result<ServedUrl> find(const std::string& url, const UrlFlags& flags);

  // The body of GET BASE/<what>, for example "summary?compact".
  Result<std::string> ask(const std::string& what) const;
  Result<bool> is_live() const;

 private:
  Result<std::string> get(const std::string& target) const;

  hub::Endpoint where_;
  hub::TlsContext tls_;
  std::string token_, base_;
};

}  // namespace stepscope::cli
