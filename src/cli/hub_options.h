// Arguments about a hub, checked, and as the agent finds them in run.txt: names of files,
// never what is in them.
//
// Thread safety: reentrant.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/result.h"
#include "hub/link.h"

namespace stepscope::cli {

struct HubFlags {
  std::string hub, hub_listen, token_file, ca, pin, tls_cert, tls_key;
};
void add_node_flags(CLI::App& app, HubFlags& flags);     // --hub, and how it is trusted
void add_hub_flags(CLI::App& run_app, HubFlags& flags);  // these, and --hub-listen with its own

// Keys: url, token_file, ca, pin; for the node that holds the hub also listen, tls_cert, tls_key.
// Empty when no hub is wanted. An Error is wrong use.
Result<std::map<std::string, std::string>> check_hub_flags(const HubFlags& flags);

// From what check_hub_flags gave: all but `join`. Reads the token and the certificates.
Result<hub::LinkOptions> link_options(const std::map<std::string, std::string>& hub);

}  // namespace stepscope::cli
