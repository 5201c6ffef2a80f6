// stepscope loader-search: the search for `stepscope.tune_loader`, whose loop runs in the process that
// started this one. A JSON object a line, from Python on stdin, to it on stdout:
//
//   in   {"pid", "loader": as of hooks/loader_settings.py, "accelerator", "steps", "max_trials",
//         "exhaustive", "progress", "output": FILE or null}
//   out  {"settings": null (its own) or {...}, "steps", "warmup"}          what to run
//   in   {"asked_ns": [], "got_ns": [], "epoch_starts": [index], "end_ns", "seconds", "failed": null,
//         "batch_bytes", "tensors"}, or {"interrupted": true}
//   ...
//   out  {"best": {...}}
//
// It ends with its stdin. What cannot be understood is wrong use: both ends are of one version.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/trial_watch.h"
#include "cli/tune_progress.h"
#include "cli/tune_search.h"
#include "model/facts.h"
#include "tuner/loop.h"

namespace stepscope::cli {
namespace {

namespace json = boost::json;

constexpr int kPollMs = 250;
constexpr int64_t kReadNs = 100'000'000;  // trials may be short
constexpr int kGuess = 7;                 // trials, before anything is known
constexpr size_t kMostLine = 64 << 20;

int64_t number(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

double real(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return 0;
  json::error_code error;
  const double found = value->to_number<double>(error);
  return error ? 0 : found;
}

bool flag(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string word(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

std::vector<int64_t> numbers(const json::object& object, const char* key) {
  std::vector<int64_t> out;
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_array()) return out;
  for (const json::value& element : value->get_array())
    if (element.is_int64()) out.push_back(element.get_int64());
  return out;
}

// Lines of stdin; something is done while none comes.
class Lines {
 public:
  template <typename Meanwhile>
  std::optional<json::object> next(Meanwhile meanwhile) {
    while (true) {
      if (const size_t end = text_.find('\n'); end != std::string::npos) {
        json::error_code error;
        json::value value = json::parse(json::string_view(text_.data(), end), error);
        text_.erase(0, end + 1);
        if (error || !value.is_object()) return std::nullopt;
        return std::move(value.get_object());
      }
      pollfd entry{0, POLLIN, 0};
      if (::poll(&entry, 1, kPollMs) == 0) {
        meanwhile();
        continue;
      }
      char buffer[65536];
      const ssize_t n = ::read(0, buffer, sizeof buffer);
      if (n <= 0 || text_.size() > kMostLine) return std::nullopt;
      text_.append(buffer, static_cast<size_t>(n));
    }
  }

 private:
  std::string text_;
};

class LoaderSearch {
 public:
  int run() {
    auto first = lines_.next([] {});
    if (!first) return kWrongUse;
    const json::value* loader = first->if_contains("loader");
    const int steps = static_cast<int>(number(*first, "steps"));
    const auto pid = static_cast<int32_t>(number(*first, "pid"));
    if (loader == nullptr || steps < 1 || pid < 1) return kWrongUse;
    pid_ = pid;
    loader_ = parse_loader(json::serialize(*loader));
    accelerator_ = flag(*first, "accelerator");
    output_ = word(*first, "output");
    progress_ = TuneProgress(!flag(*first, "progress"));
    const tuner::Options options{.steps = steps,
                                 .most_trials = static_cast<int>(number(*first, "max_trials")),
                                 .exhaustive = flag(*first, "exhaustive")};
    begin_ns_ = monotonic_ns();
    auto own = trial({loader_.settings, steps, true}, kGuess);
    if (!own) return interrupted_ ? kFine : kWrongUse;
    TuneSearch search(std::move(*own), options);
    while (const auto request = search.next()) {
      auto result = trial(*request, search.expected_trials());
      if (!result && !interrupted_) return kWrongUse;
      if (!result) break;
      search.tell(std::move(*result));
    }
    return tell(search);
  }

 private:
  std::optional<TrialResult> trial(const tuner::Request& request, int expected) {
    progress_.begin(++trials_, expected,
                    request.own ? "your own settings" : tuner::as_arguments(request.settings),
                    request.steps);
    print(json::serialize(json::object{
              {"settings", request.own ? json::value(nullptr) : settings_json(request.settings)},
              {"steps", request.steps},
              {"warmup", tuner::warmup_of(request.settings)}}) +
          "\n");
    const sampler::Process process{pid_, sampler::process_start(pid_).value_or(0), 0};
    TrialWatch watch(request.settings.num_workers, kReadNs);
    const auto look = [&] { watch.poll({process}, monotonic_ns(), true); };
    look();
    const auto told = lines_.next(look);
    interrupted_ = told && flag(*told, "interrupted");
    if (!told || interrupted_) return std::nullopt;
    look();
    TrialResult out = result_of(*told, request, watch);
    const tuner::Rate rate = tuner::rate_of({out.run});
    progress_.end(rate.steps == 0 ? "failed: " + out.run.failed
                                  : fmt::format("{:.3g} steps/s, {:.0f} % of it waits for data",
                                                rate.steps_per_s, 100 * rate.input_share));
    return out;
  }

  TrialResult result_of(const json::object& told, const tuner::Request& request,
                        const TrialWatch& watch) const {
    const auto asked = numbers(told, "asked_ns"), got = numbers(told, "got_ns");
    std::vector<tuner::Fetch> fetches(std::min(asked.size(), got.size()));
    for (size_t i = 0; i < fetches.size(); ++i) fetches[i] = {asked[i], got[i], false};
    for (const int64_t at : numbers(told, "epoch_starts"))
      if (at >= 0 && static_cast<size_t>(at) < fetches.size())
        fetches[static_cast<size_t>(at)].epoch_start = true;
    TrialResult out;
    out.run = tuner::run_of(fetches, number(told, "end_ns"), request.settings,
                            static_cast<double>(loader_.steps_per_epoch));
    out.run.failed = word(told, "failed");
    if (out.run.failed.empty() && out.run.step_ms.empty())
      out.run.failed = "no step but those that begin an epoch";
    if (!out.run.failed.empty()) out.run.step_ms = out.run.wait_ms = {};
    out.seconds = real(told, "seconds");
    out.ranks = 1;
    out.facts = accelerator_ ? uint32_t{kFactAccelerator} : 0;
    out.process.loaders[1] = loader_;
    out.training = {1};
    out.machine = watch.machine();
    out.seen = watch.seen(1);
    if (const int64_t bytes = number(told, "batch_bytes"); bytes > 0) out.seen.batch_bytes = bytes;
    out.seen.batch_tensors = std::max<int64_t>(1, number(told, "tensors"));
    return out;
  }

  int tell(const TuneSearch& search) const {
    const TuneResult result =
        search.result(interrupted_, static_cast<double>(monotonic_ns() - begin_ns_) / 1e9);
    if (!output_.empty())
      if (const Status written = write_file(output_, tuned_json(result)); !written)
        return wrong_use(written.error());
    print(json::serialize(json::object{{"best", result.best == result.space.user
                                                    ? json::value(nullptr)
                                                    : settings_json(result.best)}}) +
          "\n");
    return kFine;
  }

  Lines lines_;
  int32_t pid_ = 0;
  LoaderFacts loader_;
  bool accelerator_ = false, interrupted_ = false;
  std::string output_;
  TuneProgress progress_{true};
  int64_t begin_ns_ = 0;
  int trials_ = 0;
};

}  // namespace

void add_loader_search(CLI::App& app, Action& action) {
  CLI::App* search = app.add_subcommand("loader-search", "Search for stepscope.tune_loader");
  search->group("");  // not in --help
  search->callback([&action] { action = [] { return LoaderSearch().run(); }; });
}

}  // namespace stepscope::cli
