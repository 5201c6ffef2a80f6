// `run`'s arguments about a hub, checked, and as the agent finds them in run.txt: names of files,
// never what is in them.
//
// Thread safety: reentrant.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/result.h"

namespace stepscope::cli {

struct HubFlags {
  std::string hub, hub_listen, token_file, ca, pin, tls_cert, tls_key;
};
void add_hub_flags(CLI::App& run_app, HubFlags& flags);

// Keys: url, token_file, ca, pin; for the node that holds the hub also listen, tls_cert, tls_key.
// Empty when no hub is wanted. An Error is wrong use.
Result<std::map<std::string, std::string>> check_hub_flags(const HubFlags& flags);

}  // namespace stepscope::cli
