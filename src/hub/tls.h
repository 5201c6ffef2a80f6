// TLS for hub and node: TLS 1.2 or newer, the hub has a certificate, the node checks it by a CA and
// the host's name, or by the certificate's SHA-256 fingerprint alone (--pin).
//
// Thread safety: a context is used by one thread.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/result.h"
#include "hub/endpoint.h"

namespace stepscope::hub {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

Result<TlsContext> make_hub_tls(const std::string& cert_path, const std::string& key_path);

struct Trust {
  std::string ca_file;  // empty: the system's
  std::string pin;      // 64 hex digits; empty: none. With it the CA is not asked
};
Result<TlsContext> make_node_tls(const Trust& trust, const Endpoint& hub);

// 64 hex digits, from "AB:CD:..." or "sha256:abcd..." too.
Result<std::string> parse_pin(std::string_view text);
Result<std::string> pin_of(const std::string& cert_path);  // of the first certificate of a PEM file

}  // namespace stepscope::hub
