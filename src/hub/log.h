// What the hub says while it runs: a line a happening; of happenings that a stranger can repeat at
// will, one a second of each kind, with the number of those that were left out.
//
// Thread safety: none. Lines are printable, whatever a peer called itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace stepscope::hub {

class Log {
 public:
  explicit Log(std::function<void(const std::string&)> write) : write_(std::move(write)) {}

  void say(const std::string& line);
  void say_often(const std::string& kind, const std::string& line, int64_t now_ns);
  void flush(int64_t now_ns);  // tells what was left out more than a second ago

 private:
  struct Kind {
    int64_t said_ns = 0;
    int64_t left_out = 0;
  };
  std::function<void(const std::string&)> write_;
  std::map<std::string, Kind> kinds_;
};

}  // namespace stepscope::hub
