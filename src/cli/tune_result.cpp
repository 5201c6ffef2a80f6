#include "cli/tune_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/file.h"
#include "base/text.h"

namespace stepscope::cli {

namespace json = boost::json;

namespace {

json::value known(const tuner::Rate& rate, double value) {
  return rate.steps > 0 ? json::value(value) : json::value(nullptr);
}

json::object rate_json(const tuner::LoaderSettings& settings, const tuner::Rate& rate) {
  return {{"settings", settings_json(settings)},
          {"steps_per_s", known(rate, rate.steps_per_s)},
          {"steps_per_s_low", known(rate, rate.low)},
          {"steps_per_s_high", known(rate, rate.high)},
          {"input_share", known(rate, rate.input_share)},
          {"steps", rate.steps}};
}

std::string because(const std::string& code) {
  if (code == "input_fine")
    return fmt::format("input no longer limits the step: at most {:.0f} % of it waits for data",
                       100 * tuner::kFineShare);
  if (code == "searched") return "nothing that is left to try should be faster";
  if (code == "most_trials") return "--max-trials was reached";
  if (code == "own_failed") return "your own settings gave no figure";
  return "interrupted: this is the best so far";
}

std::string yes(bool value) { return value ? "yes" : "no"; }

std::string extras(const tuner::LoaderSettings& s) {
  std::string out;
  const auto add = [&](const std::string& word) { out += (out.empty() ? "" : ", ") + word; };
  if (s.pin_memory) add("pinned");
  if (s.batch_wise) add("batch-wise");
  if (s.worker_threads > 0) add(fmt::format("{} thread a worker", s.worker_threads));
  if (!s.multiprocessing_context.empty()) add(s.multiprocessing_context);
  return out;
}

std::string headline(const TuneResult& result) {
  const std::string arguments = tuner::as_arguments(result.best);
  if (result.own.steps == 0) return "NO FIGURE  " + because(result.stopped_because) + "\n";
  if (result.best == result.space.user)
    return fmt::format("YOUR OWN SETTINGS ARE THE BEST  {}  {:.3g} steps/s\n", arguments,
                       result.own.steps_per_s);
  return fmt::format("BEST  {}\n      {:.3g} steps/s, {:.2f} times your {:.3g}\n", arguments,
                     result.best_rate.steps_per_s,
                     result.best_rate.steps_per_s / result.own.steps_per_s, result.own.steps_per_s);
}

std::string row(const TuneResult& result, const tuner::Trial& trial) {
  const tuner::LoaderSettings& s = trial.settings;
  const bool workers = s.num_workers > 0;
  const tuner::Rate rate = tuner::rate_of({trial.run});
  std::string line = fmt::format("{} {:>7}  {:>8}  {:>10}  ", s == result.best ? ">" : " ",
                                 s.num_workers, workers ? std::to_string(s.prefetch_factor) : "-",
                                 workers ? yes(s.persistent_workers) : "-");
  if (rate.steps == 0)
    line += fmt::format("{:>8}  {:>7}  {:>5}", "-", "-", "-");
  else
    line += fmt::format("{:>8.3g}  {:>5.0f} %  {:>5}", rate.steps_per_s, 100 * rate.input_share,
                        rate.steps);
  std::string rest = trial.own ? "yours" : "";
  const auto add = [&](const std::string& words) {
    if (!words.empty()) rest += (rest.empty() ? "" : ", ") + words;
  };
  add(extras(s));
  if (rate.steps == 0) add(printable(trial.run.failed, 120));
  return rest.empty() ? line + "\n" : line + "  " + rest + "\n";
}

std::string in_code(const TuneResult& result) {
  tuner::LoaderSettings plain = result.best;
  plain.batch_wise = false;
  plain.worker_threads = 0;
  std::string text = "DataLoader(..., " + tuner::as_arguments(plain) + ")";
  if (result.best.batch_wise)
    text +=
        "\n                 and whole batches at once: DataLoader(dataset, batch_size=None,\n"
        "                 sampler=BatchSampler(RandomSampler(dataset), batch_size, drop_last))";
  if (result.best.worker_threads > 0)
    text += fmt::format(
        "\n                 and in worker_init_fn: torch.set_num_threads({0}), "
        "cv2.setNumThreads({0})",
        result.best.worker_threads);
  return text;
}

double steps_per_s(const json::object& object, const char* key) {
  const json::value* part = object.if_contains(key);
  if (part == nullptr || !part->is_object()) return 0;
  const json::value* value = part->get_object().if_contains("steps_per_s");
  return value != nullptr && value->is_double() ? value->get_double() : 0;
}

int whole(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_int64()
             ? static_cast<int>(std::clamp<int64_t>(value->get_int64(), 0, 100'000))
             : 0;
}

bool truth(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

tuner::LoaderSettings read_settings(const json::object& s) {
  const json::value* context = s.if_contains("multiprocessing_context");
  return tuner::clean({.num_workers = whole(s, "num_workers"),
                       .prefetch_factor = whole(s, "prefetch_factor"),
                       .persistent_workers = truth(s, "persistent_workers"),
                       .pin_memory = truth(s, "pin_memory"),
                       .batch_wise = truth(s, "batch_wise"),
                       .worker_threads = whole(s, "worker_threads"),
                       .multiprocessing_context = context != nullptr && context->is_string()
                                                      ? std::string(context->get_string().c_str())
                                                      : ""});
}

const json::object* object_at(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? &value->get_object() : nullptr;
}

}  // namespace

json::object settings_json(const tuner::LoaderSettings& s) {
  const bool workers = s.num_workers > 0;
  return {{"num_workers", s.num_workers},
          {"prefetch_factor", workers ? json::value(s.prefetch_factor) : json::value(nullptr)},
          {"persistent_workers", s.persistent_workers},
          {"pin_memory", s.pin_memory},
          {"batch_wise", s.batch_wise},
          {"worker_threads",
           s.worker_threads > 0 ? json::value(s.worker_threads) : json::value(nullptr)},
          {"multiprocessing_context", s.multiprocessing_context.empty()
                                          ? json::value(nullptr)
                                          : json::value(s.multiprocessing_context)}};
}

std::string tuned_json(const TuneResult& result) {
  json::array trials, limits, command, loaders, notes;
  for (const tuner::Trial& trial : result.trials) {
    json::object entry = rate_json(trial.settings, tuner::rate_of({trial.run}));
    entry["own"] = trial.own;
    entry["seconds"] = trial.seconds;
    entry["failed"] =
        trial.run.failed.empty() ? json::value(nullptr) : json::value(trial.run.failed);
    trials.push_back(std::move(entry));
  }
  for (const tuner::Limit& limit : result.limits)
    limits.push_back(json::object{
        {"name", limit.name},
        {"workers", limit.workers ? json::value(*limit.workers) : json::value(nullptr)},
        {"arithmetic", limit.arithmetic}});
  for (const std::string& word : result.command) command.emplace_back(word);
  for (const int number : result.loaders) loaders.emplace_back(number);
  for (const std::string& note : result.notes) notes.emplace_back(note);
  return json::serialize(json::object{
             {"schema", 1},
             {"command", std::move(command)},
             {"loader", json::object{{"numbers", std::move(loaders)}, {"dataset", result.dataset}}},
             {"user", rate_json(result.space.user, result.own)},
             {"best", rate_json(result.best, result.best_rate)},
             {"trials", std::move(trials)},
             {"grid", tuner::grid(result.space).size()},
             {"limits", std::move(limits)},
             {"notes", std::move(notes)},
             {"stopped_because", result.stopped_because},
             {"seconds", result.seconds}}) +
         "\n";
}

std::string tuned_table(const TuneResult& result, const std::string& next_command) {
  std::string text = headline(result) + "\n";
  text += "  workers  prefetch  persistent   steps/s    input  steps\n";
  for (const tuner::Trial& trial : result.trials) text += row(result, trial);
  text += fmt::format("\nstopped because  {}\n", because(result.stopped_because));
  text += fmt::format("trials           {} in {:.0f} s, of a grid of {}\n", result.trials.size(),
                      result.seconds, tuner::grid(result.space).size());
  for (size_t i = 0; i < result.limits.size(); ++i)
    text += fmt::format("{:<17}{}: {}\n", i == 0 ? "workers at most" : "", result.limits[i].name,
                        result.limits[i].arithmetic);
  for (size_t i = 0; i < result.notes.size(); ++i)
    text += fmt::format("{:<17}{}\n", i == 0 ? "note" : "", result.notes[i]);
  if (result.best == result.space.user) return text;
  text += "put in           " + in_code(result) + "\n";
  if (!next_command.empty()) text += "next             " + next_command + "\n";
  return text;
}

std::string loader_variable(const std::vector<int>& loaders,
                            const tuner::LoaderSettings& settings) {
  json::array numbers;
  for (const int number : loaders) numbers.emplace_back(number);
  return json::serialize(
      json::object{{"loaders", std::move(numbers)}, {"settings", settings_json(settings)}});
}

Tuned tuned(const TuneResult& result) {
  return {.variable =
              result.best == result.space.user ? "" : loader_variable(result.loaders, result.best),
          .settings = tuner::as_arguments(result.best),
          .command = result.command,
          .own_steps_per_s = result.own.steps_per_s,
          .best_steps_per_s = result.best_rate.steps_per_s};
}

Result<Tuned> read_tuned(const std::string& path) {
  const auto content = read_file(path);
  const std::string hint =
      "make one: stepscope tune loader --output " + shell_quote(path) + " -- python train.py";
  if (!content) return Error{content.error().message, hint};
  const Error wrong{shell_quote(path) + " is not what `stepscope tune loader --output` writes",
                    hint};
  json::error_code error;
  const json::value value = json::parse(*content, error);
  if (error || !value.is_object()) return wrong;
  const json::object& object = value.get_object();
  const json::object* best = object_at(object, "best");
  const json::object* own = object_at(object, "user");
  const json::object* loader = object_at(object, "loader");
  const json::object* settings = best == nullptr ? nullptr : object_at(*best, "settings");
  const json::object* own_settings = own == nullptr ? nullptr : object_at(*own, "settings");
  const json::value* numbers = loader == nullptr ? nullptr : loader->if_contains("numbers");
  if (settings == nullptr || own_settings == nullptr || numbers == nullptr || !numbers->is_array())
    return wrong;
  std::vector<int> loaders;
  for (const json::value& number : numbers->get_array())
    if (number.is_int64()) loaders.push_back(static_cast<int>(number.get_int64()));
  const tuner::LoaderSettings wanted = read_settings(*settings);
  Tuned out{
      .variable = wanted == read_settings(*own_settings) ? "" : loader_variable(loaders, wanted),
      .settings = tuner::as_arguments(wanted),
      .command = {},
      .own_steps_per_s = steps_per_s(object, "user"),
      .best_steps_per_s = steps_per_s(object, "best")};
  if (const json::value* command = object.if_contains("command");
      command != nullptr && command->is_array())
    for (const json::value& word : command->get_array())
      if (word.is_string()) out.command.emplace_back(word.get_string().c_str());
  return out;
}

}  // namespace stepscope::cli
