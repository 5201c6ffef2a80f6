#include "serve/loop.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/fd.h"
#include "serve/client.h"

namespace stepscope::serve {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{10'000};

class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = "/tmp/stepscope-loop-" + std::to_string(::getpid()) + ".sock";
    ASSERT_TRUE(loop_.listen(path_, [](const Request& request) {
      return Reply{request.target == "/missing" ? 404 : 200, "text/plain",
                   request.method + request.target + request.body};
    }));
  }

  // Runs `client` beside the loop until it is done.
  template <typename F>
  void beside(F client) {
    int done[2];
    ASSERT_EQ(::pipe(done), 0);
    loop_.wake_on(done[0]);
    std::thread thread([&] {
      client();
      ASSERT_EQ(::write(done[1], "x", 1), 1);
    });
    loop_.wait(kLong);
    thread.join();
    char byte;
    ASSERT_EQ(::read(done[0], &byte, 1), 1);
    fds_.emplace_back(done[0]);
    fds_.emplace_back(done[1]);
  }

  Fd connect() {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  std::vector<Fd> fds_;  // outlive the loop that watches them
  std::string path_;
  Loop loop_;
};

TEST_F(LoopTest, AnswersAndMindsItsModes) {
  struct stat st;
  ASSERT_EQ(::stat(path_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777u, 0600u);
  beside([&] {
    const auto reply = ask(path_, {"POST", "/a?b", "body"}, kLong);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(*reply, "POST/a?bbody");
    EXPECT_FALSE(ask(path_, {"GET", "/missing", ""}, kLong));
  });
}

TEST_F(LoopTest, LargeRepliesArriveWhole) {
  const std::string path = path_ + "2";
  Loop loop;
  const std::string large(5 << 20, 'x');
  ASSERT_TRUE(loop.listen(path, [&](const Request&) { return Reply{200, "text/plain", large}; }));
  std::thread client([&] {
    const auto reply = ask(path, {"GET", "/", ""}, kLong);
    ASSERT_TRUE(reply);
    EXPECT_EQ(*reply, large);
  });
  std::atomic<bool> done = false;
  std::thread waiter([&] {
    client.join();
    done = true;
  });
  while (!done) loop.wait(milliseconds(10));
  waiter.join();
}

TEST_F(LoopTest, TimeAndDescriptorsEndTheWait) {
  loop_.wait(milliseconds(1));
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  loop_.wake_on(pipe[0]);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  loop_.wait(std::chrono::hours(1));  // would hang the test otherwise
  char byte;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  ASSERT_EQ(::write(pipe[1], "y", 1), 1);
  loop_.wait(std::chrono::hours(1));  // armed again
  fds_.emplace_back(pipe[0]);
  fds_.emplace_back(pipe[1]);
}

TEST_F(LoopTest, HostileBytesAndIdleGuestsDoNotStopIt) {
  beside([&] {
    std::mt19937 random(20261129);
    std::vector<Fd> idle;
    for (int i = 0; i < 8; ++i) idle.push_back(connect());  // these never say anything
    for (int i = 0; i < 200; ++i) {
      const Fd fd = connect();
      std::string bytes(random() % 3000, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      if (i % 3 == 0) bytes = "POST / HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n" + bytes;
      if (i % 3 == 1) bytes = "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n";
      (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    const auto reply = ask(path_, {"GET", "/still-there", ""}, kLong);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(*reply, "GET/still-there");
  });
}

TEST_F(LoopTest, NobodyThereIsAnError) {
  const auto reply = ask("/tmp/stepscope-no-such.sock", {"GET", "/", ""}, kLong);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(ask(std::string(200, 'x'), {"GET", "/", ""}, kLong));
  EXPECT_FALSE(ask(path_, {"GET", "/", ""},
                   milliseconds(50)));  // the loop is not waiting: no answer in time
}

}  // namespace
}  // namespace stepscope::serve
