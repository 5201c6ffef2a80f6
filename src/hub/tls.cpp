#include "hub/tls.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/host_name_verification.hpp>

#include "base/file.h"
#include "base/text.h"
#include "hub/token.h"

namespace stepscope::hub {
namespace ssl = boost::asio::ssl;
namespace {

std::string fingerprint(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest, &size) != 1)
    return "";
  return hex({reinterpret_cast<const char*>(digest), size});
}

TlsContext new_context(ssl::context::method method) {
  auto context = std::make_shared<ssl::context>(method);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                       ssl::context::no_sslv3 | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  return context;
}

}  // namespace

Result<TlsContext> make_hub_tls(const std::string& cert_path, const std::string& key_path) {
  TlsContext context = new_context(ssl::context::tls_server);
  boost::system::error_code error;
  if (context->use_certificate_chain_file(cert_path, error); error)
    return Error{"cannot use the certificate " + cert_path + ": " + error.message(), ""};
  if (context->use_private_key_file(key_path, ssl::context::pem, error); error)
    return Error{"cannot use the key " + key_path + ": " + error.message(),
                 "it must be the PEM key of " + shell_quote(cert_path)};
  return context;
}

Result<TlsContext> make_node_tls(const Trust& trust, const Endpoint& hub) {
  TlsContext context = new_context(ssl::context::tls_client);
  boost::system::error_code error;
  if (!trust.pin.empty()) {
    // Called from the root down to the hub's own certificate: that one decides, whoever signed it.
    context->set_verify_mode(ssl::verify_peer);
    context->set_verify_callback([pin = trust.pin](bool, ssl::verify_context& verify) {
      X509_STORE_CTX* store = verify.native_handle();
      if (X509_STORE_CTX_get_error_depth(store) > 0) return true;
      X509* certificate = X509_STORE_CTX_get_current_cert(store);
      return fingerprint(certificate) == pin;
    });
    return context;
  }
  if (trust.ca_file.empty())
    context->set_default_verify_paths(error);
  else
    context->load_verify_file(trust.ca_file, error);
  if (error)
    return Error{"cannot use the CA file " + trust.ca_file + ": " + error.message(),
                 "give the PEM file of whoever signed the hub's certificate"};
  context->set_verify_mode(ssl::verify_peer);
  context->set_verify_callback(ssl::host_name_verification(hub.host));
  return context;
}

Result<std::string> parse_pin(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  std::string_view rest = text;
  if (rest.starts_with(kPrefix)) rest.remove_prefix(kPrefix.size());
  std::string pin;
  for (const char c : rest) {
    if (c == ':') continue;
    const char low = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!((low >= '0' && low <= '9') || (low >= 'a' && low <= 'f'))) {
      pin.clear();
      break;
    }
    pin += low;
  }
  if (pin.size() != 64)
    return Error{"--pin " + shell_quote(printable(text, 200)) + " is not a SHA-256 fingerprint",
                 "read it from the hub's start, or: openssl x509 -in cert.pem -noout -fingerprint "
                 "-sha256"};
  return pin;
}

Result<std::string> pin_of(const std::string& cert_path) {
  const auto pem = read_file(cert_path, 1 << 20);
  if (!pem) return Error{"cannot read the certificate: " + pem.error().message, ""};
  BIO* bio = BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size()));
  X509* certificate = bio == nullptr ? nullptr : PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  const std::string pin = fingerprint(certificate);
  X509_free(certificate);
  BIO_free(bio);
  if (pin.empty()) return Error{"there is no certificate in " + cert_path, "it must be a PEM file"};
  return pin;
}

}  // namespace stepscope::hub
