#include "tuner/loader_settings.h"

namespace stepscope::tuner {
namespace {

std::string python(bool value) { return value ? "True" : "False"; }

}  // namespace

LoaderSettings clean(LoaderSettings settings) {
  if (settings.num_workers > 0) return settings;
  settings.num_workers = 0;
  settings.prefetch_factor = 0;
  settings.persistent_workers = false;
  settings.worker_threads = 0;
  settings.multiprocessing_context.clear();
  return settings;
}

int cost(const LoaderSettings& settings) {
  return 1000 * settings.num_workers + 10 * settings.prefetch_factor +
         (settings.pin_memory ? 2 : 0) + (settings.persistent_workers ? 1 : 0);
}

std::vector<std::pair<std::string, std::string>> fields(const LoaderSettings& settings) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("num_workers", std::to_string(settings.num_workers));
  if (settings.num_workers > 0) {
    out.emplace_back("prefetch_factor", std::to_string(settings.prefetch_factor));
    out.emplace_back("persistent_workers", python(settings.persistent_workers));
  }
  if (settings.pin_memory) out.emplace_back("pin_memory", python(true));
  if (settings.batch_wise) out.emplace_back("batch_wise", python(true));
  if (settings.worker_threads > 0)
    out.emplace_back("worker_threads", std::to_string(settings.worker_threads));
  if (!settings.multiprocessing_context.empty())
    out.emplace_back("multiprocessing_context", "'" + settings.multiprocessing_context + "'");
  return out;
}

std::string as_arguments(const LoaderSettings& settings) {
  std::string text;
  for (const auto& [name, value] : fields(settings))
    text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

}  // namespace stepscope::tuner
