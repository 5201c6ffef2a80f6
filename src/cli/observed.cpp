#include "cli/observed.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMostSentences = 4;

struct Interpreter {
  std::string executable, version, state;
};

std::map<int32_t, Interpreter> parse(std::string_view boot_log) {
  std::map<int32_t, Interpreter> out;
  for (const std::string_view line : split(boot_log, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() < 4) continue;  // cut by a full disk, or not ours
    const auto pid = parse_number<int32_t>(fields[0]);
    if (!pid) continue;
    out[*pid] = {printable(fields[1], 256), printable(fields[2], 32), printable(fields[3], 512)};
  }
  return out;
}

std::string named(const Interpreter& python) {
  return "Python " + python.version + " (" + python.executable + ")";
}

}  // namespace

std::vector<std::string> unobserved(std::string_view boot_log, const std::set<int32_t>& recorded,
                                    bool any_step, size_t ranks) {
  const auto interpreters = parse(boot_log);
  std::map<std::string, int>
      counted;  // sentence -> processes; launchers without torch are only news when alone
  std::map<std::string, int> without_torch;
  for (const auto& [pid, python] : interpreters) {
    if (recorded.contains(pid)) continue;
    if (python.state == "0")
      ++without_torch[named(python) + " did not import torch"];
    else if (python.state == "1")
      ++counted[named(python) + " imported torch, but no training step was seen"];
    else
      ++counted[named(python) + ": " + python.state];
  }
  if (recorded.empty() && counted.empty()) counted = without_torch;
  // Where others were recorded, a process that imported torch and trained nothing (a launcher) is
  // as it should be.
  if (any_step)
    std::erase_if(counted, [](const auto& entry) {
      return entry.first.ends_with("no training step was seen");
    });

  std::vector<std::string> sentences;
  for (const auto& [sentence, processes] : counted) {
    if (sentences.size() == kMostSentences) {
      sentences.push_back("and " + std::to_string(counted.size() - kMostSentences) +
                          " other kinds");
      break;
    }
    sentences.push_back(
        processes == 1 ? sentence : sentence + " (" + std::to_string(processes) + " processes)");
  }
  if (interpreters.empty() && recorded.empty())
    sentences.push_back(
        "no Python was observed: it was started with -I, -E or -S, its environment was cleared, or "
        "none ran");
  if (ranks > 0 && !any_step && counted.empty())
    sentences.push_back("torch was imported, but no training step was seen");
  return sentences;
}

}  // namespace stepscope::cli
