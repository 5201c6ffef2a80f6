#include "hub/log.h"

#include "base/text.h"

namespace stepscope::hub {
namespace {

constexpr int64_t kEveryNs = 1'000'000'000;
constexpr size_t kMaxLine = 500, kMaxKinds = 64;

}  // namespace

void Log::say(const std::string& line) { write_(printable(line, kMaxLine)); }

void Log::say_often(const std::string& kind, const std::string& line, int64_t now_ns) {
  const std::string name = kinds_.size() < kMaxKinds || kinds_.contains(kind) ? kind : "other";
  Kind& entry = kinds_[name];
  if (entry.said_ns != 0 && now_ns - entry.said_ns < kEveryNs) {
    ++entry.left_out;
    return;
  }
  entry.said_ns = now_ns;
  say(line);
}

void Log::flush(int64_t now_ns) {
  for (auto& [name, kind] : kinds_) {
    if (kind.left_out == 0 || now_ns - kind.said_ns < kEveryNs) continue;
    say(std::to_string(kind.left_out) + " more: " + name);
    kind.left_out = 0;
    kind.said_ns = now_ns;
  }
}

}  // namespace stepscope::hub
