// What the tuner found: as a table for people, as JSON, and as the environment that puts it in.
//
// Thread safety: pure. Invariant: read_tuned() takes what tuned_json() wrote, and of any other bytes
// gives an Error that names the file.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/limits.h"
#include "tuner/search.h"

namespace stepscope::cli {

struct TuneResult {
  std::vector<std::string> command;
  std::string dataset;
  std::vector<int> loaders;  // numbers of those that feed the loop
  tuner::Space space;
  std::vector<tuner::Trial> trials;
  tuner::Rate own, best_rate;
  tuner::LoaderSettings best;
  std::string stopped_because;  // a code: tuner::stop_code, or "interrupted"
  std::vector<tuner::Limit> limits;
  std::vector<std::string> notes;
  double seconds = 0;
};

std::string tuned_json(const TuneResult& result);
std::string tuned_table(const TuneResult& result, const std::string& next_command);

boost::json::object settings_json(const tuner::LoaderSettings& settings);

// STEPSCOPE_LOADER for these settings (hooks/loader_settings.py).
std::string loader_variable(const std::vector<int>& loaders, const tuner::LoaderSettings& settings);

struct Tuned {           // what --apply-env needs
  std::string variable;  // empty: the own settings are the best
  std::string settings;  // as arguments
  std::vector<std::string> command;
  double own_steps_per_s = 0, best_steps_per_s = 0;
};
Result<Tuned> read_tuned(const std::string& path);
Tuned tuned(const TuneResult& result);

}  // namespace stepscope::cli
