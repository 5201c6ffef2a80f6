#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "web/server.h"

namespace stepscope::web {
namespace {

constexpr int kBacklog = 128;

}  // namespace

Result<Fd> listen_on(const hub::Endpoint& where) {
  const auto fail = [&](const std::string& why, const std::string& hint = "") {
    return Error{"cannot listen on " + where.host + ":" + std::to_string(where.port) + ": " + why,
                 hint};
  };
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int failed =
      ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &wanted, &found);
  if (failed != 0 || found == nullptr) return fail(::gai_strerror(failed));
  sockaddr_storage address{};
  const socklen_t size = found->ai_addrlen;
  const int family = found->ai_family;
  std::memcpy(&address, found->ai_addr, size);
  ::freeaddrinfo(found);
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(errno_text());
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0)
    return fail(errno_text(), errno == EADDRINUSE ? "see who has it: ss -ltnp" : "");
  return fd;
}

uint16_t port_of(const Fd& listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

}  // namespace stepscope::web
