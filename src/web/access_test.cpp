#include "web/access.h"

#include <gtest/gtest.h>

#include "web/viewer.h"

namespace stepscope::web {
namespace {

constexpr const char* kToken = "a-token-of-some-length";

Access access(bool secure = false) { return Access(kToken, {"node7", "fd00::1"}, secure); }

Credentials from(std::string_view host, std::string_view origin = "") {
  return {host, origin, "", "", ""};
}
Credentials cookie(std::string_view text) { return {"", "", text, "", ""}; }
Credentials authorization(std::string_view text) { return {"", "", "", text, ""}; }
Credentials target(std::string_view text) { return {"", "", "", "", text}; }

TEST(Access, KnowsItsHosts) {
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1:1", "[::1]", "[::1]:80",
                           "node7:65535", "[fd00::1]:80"})
    EXPECT_TRUE(access().host_fits(from(host))) << host;
  for (const char* host : {"", "evil", "localhost.", "localhost:", "localhost:99999", "localhost:x",
                           "127.0.0.1.evil", "[::1", "[::1]x", "[::1]:", "node", "node77"})
    EXPECT_FALSE(access().host_fits(from(host))) << host;
}

TEST(Access, OriginIsTheHost) {
  EXPECT_TRUE(access().origin_fits(from("localhost:1")));
  EXPECT_TRUE(access().origin_fits(from("localhost:1", "HTTP://LOCALHOST:1")));
  EXPECT_TRUE(access(true).origin_fits(from("localhost:1", "https://localhost:1")));
  for (const char* origin : {"null", "http://", "http://localhost", "http://localhost:2",
                             "https://localhost:1", "http://localhost:1.evil", "localhost:1"})
    EXPECT_FALSE(access().origin_fits(from("localhost:1", origin))) << origin;
}

TEST(Access, TakesBearerAndCookie) {
  const std::string header = access().set_cookie();
  const std::string pair = header.substr(0, header.find(';'));
  const std::string others = "a=b; " + pair + " ;c";
  EXPECT_TRUE(access().has_cookie_or_bearer(cookie(others)));
  EXPECT_FALSE(access().has_cookie_or_bearer(cookie("x" + pair)));
  EXPECT_FALSE(access().has_cookie_or_bearer(cookie(pair + "0")));
  EXPECT_FALSE(access().has_cookie_or_bearer(cookie(access().cookie_name() + "=")));
  EXPECT_TRUE(access().has_cookie_or_bearer(authorization("bearer  a-token-of-some-length")));
  EXPECT_FALSE(access().has_cookie_or_bearer(authorization("Bearer ")));
  EXPECT_FALSE(access().has_cookie_or_bearer(authorization("Basic a-token-of-some-length")));
  EXPECT_NE(access().cookie_name(), Access("another", {}, false).cookie_name());
  EXPECT_EQ(header.find("Secure"), std::string::npos);
  EXPECT_NE(access(true).set_cookie().find("; Secure"), std::string::npos);
}

TEST(Access, TokenInTheAddressOfThePageAlone) {
  for (const char* path :
       {"/?token=a-token-of-some-length", "/?x=1&token=a%2dtoken-of-some-length"})
    EXPECT_TRUE(access().has_token_in_query(target(path))) << path;
  for (const char* path : {"/v1/runs?token=a-token-of-some-length", "/?token=", "/?token=%zz",
                           "/?token=a-token-of-some-lengt", "/?token=a-token-of-some-length1"})
    EXPECT_FALSE(access().has_token_in_query(target(path))) << path;
}

TEST(Access, TokensAreLongAndSafeInAnAddress) {
  const std::string token = make_token();
  EXPECT_EQ(token.size(), 43u);  // 32 bytes
  EXPECT_NE(token, make_token());
  for (const char c : token) EXPECT_TRUE(isalnum(c) || c == '-' || c == '_') << token;
}

Text text(const char* words) { return std::make_shared<const std::string>(words); }

TEST(Outbox, ANewerFrameTakesThePlaceOfOneThatWaits) {
  Outbox out;
  EXPECT_EQ(out.take(), nullptr);
  out.tick(text("1"), text("1 gap"));
  EXPECT_EQ(*out.take(), "1 gap");  // what was before is not known to a new viewer
  out.tick(text("2"), text("2 gap"));
  EXPECT_EQ(*out.take(), "2");
  out.summary(text("a"));
  out.tick(text("3"), text("3 gap"));
  out.tick(text("4"), text("4 gap"));
  out.tick(text("5"), text("5 gap"));
  out.summary(text("b"));
  out.end();
  EXPECT_EQ(*out.take(), "5 gap");
  EXPECT_EQ(*out.take(), "b");
  EXPECT_FALSE(out.over());
  EXPECT_EQ(*out.take(), R"({"type":"end"})");
  EXPECT_TRUE(out.over());
  EXPECT_EQ(out.take(), nullptr);
}

}  // namespace
}  // namespace stepscope::web
