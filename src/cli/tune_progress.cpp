#include "cli/tune_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

constexpr int64_t kRedrawNs = 200'000'000;
constexpr int kBarWidth = 16;
constexpr const char* kRestart = "\r\x1b[K";

}  // namespace

TuneProgress::TuneProgress(bool quiet) : quiet_(quiet), terminal_(::isatty(2) == 1) {}

void TuneProgress::begin(int trial, int of, const std::string& settings, int steps) {
  trial_ = trial;
  of_ = std::max(trial, of);
  settings_ = settings;
  wanted_ = steps;
  drawn_ns_ = 0;
  update(0, 0);
}

void TuneProgress::update(int steps, double seconds) {
  const int64_t now = monotonic_ns();
  if (quiet_ || !terminal_ || now - drawn_ns_ < kRedrawNs) return;
  drawn_ns_ = now;
  const double part = wanted_ > 0 ? std::min(1.0, static_cast<double>(steps) / wanted_) : 0;
  const double whole = (trial_ - 1 + part) / of_;
  const auto filled = static_cast<size_t>(whole * kBarWidth);
  std::string line =
      fmt::format("{}[{}{}] trial {} of about {}: {}", kRestart, std::string(filled, '#'),
                  std::string(kBarWidth - filled, '-'), trial_, of_, settings_);
  if (steps > 0 && seconds > 0)
    line += fmt::format("  {}/{} steps", std::min(steps, wanted_), wanted_);
  (void)write_all(2, line);
}

void TuneProgress::end(const std::string& outcome) {
  if (quiet_) return;
  if (terminal_) (void)write_all(2, kRestart);
  say(fmt::format("trial {}: {}  {}", trial_, settings_, outcome));
}

}  // namespace stepscope::cli
