// Text in, findings out: every file of scenarios/ is a run in words and what the engine must say of
// it.
//
//   ranks 2 [world=4] [nodes=2]           histories 0 and 1 of a job of 4
//   facts dataloader accelerator ...      of every rank; default: dataloader
//   set input_warning 0.2
//   seed 7
//   node cores=4 reason=text memory_limit=2G memory_peak=1.9G job_peak=1G busy=1.5
//   every 50 epoch_start=400   each 50th step from here on has one of 400 ms; also checkpoint, ...
//   steps 300 [rank=1] input=30 other_between_steps=4 user.augment=9 noise=5% [heavy] [failed]
//   memory process start=500M grow=200K noise=5M samples=60 [rank=1] [level_after=0.3]
//   expect verdict CODE [severity] [confidence]
//   expect CODE [severity] [confidence]
//   expect no CODE
//   expect title|cause|phase|advice|not_measured CODE text          expect value CODE name from to
//   expect order CODE CODE ...
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "engine/engine.h"
#include "model/facts.h"

namespace stepscope::engine {
namespace {

using Words = std::vector<std::string>;

const std::map<std::string, uint32_t> kFacts = {{"none", 0},
                                                {"dataloader", kFactDataLoader},
                                                {"accelerator", kFactAccelerator},
                                                {"ddp", kFactDdp},
                                                {"root", kFactRootModule},
                                                {"ready_not_measured", kFactReadyNotMeasured}};
const std::map<std::string, OccurrenceKind> kKinds = {{"epoch_start", OccurrenceKind::kEpochStart},
                                                      {"checkpoint", OccurrenceKind::kCheckpoint},
                                                      {"validation", OccurrenceKind::kValidation},
                                                      {"profiler", OccurrenceKind::kProfiler}};

double number_of(const std::string& text) {  // 30, 5%, 500M, -2K
  size_t used = 0;
  const double value = std::stod(text, &used);
  const std::string unit = text.substr(used);
  if (unit.empty()) return value;
  if (unit == "%") return value / 100;
  if (unit == "K") return value * 1024;
  if (unit == "M") return value * 1024 * 1024;
  if (unit == "G") return value * 1024 * 1024 * 1024;
  ADD_FAILURE() << "unit of " << text;
  return 0;
}

// key=value words from `from` on; a bare word has the value "".
std::map<std::string, std::string> options(const Words& words, size_t from) {
  std::map<std::string, std::string> out;
  for (size_t i = from; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    out[words[i].substr(0, equals)] =
        equals == std::string::npos ? "" : words[i].substr(equals + 1);
  }
  return out;
}

std::string severity_name(Severity s) {
  return s == Severity::kInfo ? "info" : s == Severity::kWarning ? "warning" : "critical";
}

int64_t* part_of(StepSample& step, const std::string& name) {
  if (name == "other_before_forward") return &step.parts.other_before_forward_ns;
  if (name == "other_after_backward") return &step.parts.other_after_backward_ns;
  if (name == "other_after_optimizer") return &step.parts.other_after_optimizer_ns;
  if (name == "other_between_steps") return &step.parts.other_between_steps_ns;
  return nullptr;
}

class Script {
 public:
  void apply(const Words& words) {
    const std::string& verb = words[0];
    if (verb == "ranks") return make_ranks(words);
    if (verb == "facts") return set_facts(words);
    if (verb == "set") return check(run.settings.set(words.at(1), words.at(2)));
    if (verb == "seed") return random_.seed(std::stoull(words.at(1)));
    if (verb == "node") return make_node(words);
    if (verb == "every") return add_every(words);
    if (verb == "steps") return add_steps(words);
    if (verb == "memory") return add_memory(words);
    FAIL() << "unknown line: " << verb;
  }

  RunHistory run;

 private:
  struct Every {
    int64_t period;
    OccurrenceKind kind;
    Phase phase;
    int64_t ns;
  };

  void check(const Status& status) { ASSERT_TRUE(static_cast<bool>(status)); }

  double noise(double amount, bool heavy) {
    const double n = normal_(random_);
    return std::max(
        0.02, 1 + amount * (heavy ? n / std::sqrt(0.3 + 0.7 * std::fabs(normal_(random_))) : n));
  }

  void make_ranks(const Words& words) {
    const auto count = std::stoi(words.at(1));
    const auto named = options(words, 2);
    const int world = named.contains("world") ? std::stoi(named.at("world")) : count;
    const int nodes = named.contains("nodes") ? std::stoi(named.at("nodes")) : 1;
    for (int i = 0; i < count; ++i) {
      RankHistory& rank = run.ranks.emplace_back();
      rank.rank = i;
      rank.world_size = world;
      rank.node = "n" + std::to_string(i * nodes / count);
      rank.facts = kFactDataLoader;
    }
  }

  void set_facts(const Words& words) {
    for (RankHistory& rank : run.ranks) {
      rank.facts = 0;
      for (size_t i = 1; i < words.size(); ++i) rank.facts |= kFacts.at(words[i]);
    }
  }

  void make_node(const Words& words) {
    NodeHistory& node = run.nodes.emplace_back();
    node.node = "n" + std::to_string(run.nodes.size() - 1);
    for (const auto& [key, value] : options(words, 1)) {
      if (key == "cores") node.cores_usable = number_of(value);
      if (key == "reason") node.cores_limit_reason = value;
      if (key == "memory_limit") node.memory_limit_bytes = static_cast<int64_t>(number_of(value));
      if (key == "memory_peak") node.memory_bytes.add(number_of(value));
      if (key == "job_peak") node.job_memory_bytes.add(number_of(value));
      if (key == "busy") busy_ = number_of(value);
    }
  }

  void add_every(const Words& words) {
    for (const auto& [name, ms] : options(words, 2)) {
      const OccurrenceKind kind = kKinds.at(name);
      const Phase phase =
          kind == OccurrenceKind::kEpochStart ? Phase::kInput : *phase_from_name(name);
      every_.push_back(
          {std::stoll(words[1]), kind, phase, static_cast<int64_t>(number_of(ms) * 1e6)});
    }
  }

  void add_steps(const Words& words) {
    const auto given = options(words, 2);
    for (RankHistory& rank : run.ranks) {
      if (given.contains("rank") && std::stoi(given.at("rank")) != rank.rank) continue;
      for (int64_t i = 0; i < std::stoll(words.at(1)); ++i) add_step(rank, given);
    }
  }

  void add_step(RankHistory& rank, const std::map<std::string, std::string>& given) {
    StepSample step;
    step.rank = rank.rank;
    step.step = next_step_[rank.rank]++;
    step.begin_ns = next_ns_[rank.rank];
    step.failed = given.contains("failed");
    step.profiled = given.contains("profiled");
    step.fetches = step.backwards = step.optimizer_steps = 1;
    const double spread = given.contains("noise") ? number_of(given.at("noise")) : 0;
    for (const auto& [key, value] : given) {
      if (key == "rank" || key == "noise" || value.empty()) continue;
      const auto ns =
          static_cast<int64_t>(number_of(value) * 1e6 * noise(spread, given.contains("heavy")));
      if (key == "backwards") {
        step.backwards = std::stoi(value);
      } else if (key.starts_with("user.")) {
        step.user_phase_ns.emplace_back(key.substr(5), ns);
        step.end_ns += ns;
      } else if (int64_t* part = part_of(step, key)) {
        *part = ns;
        step[Phase::kOther] += ns;
      } else {
        ASSERT_TRUE(phase_from_name(key)) << key;
        step[*phase_from_name(key)] += ns;
      }
    }
    std::vector<Occurrence> occurrences;
    for (const Every& every : every_) {
      if (step.step % every.period != 0) continue;
      step[every.phase] += every.ns;
      if (every.kind == OccurrenceKind::kEpochStart) step.parts.epoch_start_ns += every.ns;
      occurrences.push_back(
          {rank.rank, every.kind, step.step, step.begin_ns, step.begin_ns + every.ns});
    }
    for (const int64_t ns : step.phase_ns) step.end_ns += ns;
    step.end_ns += step.begin_ns;
    next_ns_[rank.rank] = step.end_ns;
    (void)rank.add(std::move(step), run.settings);
    for (const Occurrence& occurrence : occurrences) rank.add(occurrence);
  }

  // Samples spread evenly over the steps so far.
  void add_memory(const Words& words) {
    const auto given = options(words, 2);
    const auto value = [&](const char* key, double otherwise) {
      return given.contains(key) ? number_of(given.at(key)) : otherwise;
    };
    const double count = value("samples", 60);
    for (RankHistory& rank : run.ranks) {
      if (given.contains("rank") && std::stoi(given.at("rank")) != rank.rank) continue;
      const auto steps = static_cast<double>(next_step_[rank.rank]);
      for (double i = 0; i < count; ++i) {
        MemorySample sample;
        sample.step = static_cast<int64_t>(i * (steps - 1) / (count - 1));
        const double growing =
            std::min(static_cast<double>(sample.step), value("level_after", 1) * steps);
        const auto held = static_cast<int64_t>(value("start", 0) + growing * value("grow", 0) +
                                               value("noise", 0) * normal_(random_));
        if (words.at(1) == "process") sample.anon_bytes = held;
        if (words.at(1) == "workers") sample.worker_pss_bytes = held;
        if (words.at(1) == "device") sample.device_allocated_bytes = held;
        if (busy_ > 0) sample.cpu_cores = busy_;
        rank.add(sample);
      }
    }
  }

  std::mt19937_64 random_{1};
  std::normal_distribution<double> normal_;
  std::vector<Every> every_;
  std::map<int32_t, int64_t> next_step_, next_ns_;
  double busy_ = 0;
};

std::string describe(const std::vector<Finding>& findings) {
  std::ostringstream out;
  for (const Finding& f : findings) {
    out << f.code << " " << severity_name(f.severity) << " " << f.confidence << "  " << f.title
        << "\n";
    for (const Evidence& e : f.evidence)
      out << "    " << e.name << " = " << e.value << " " << e.unit << "\n";
    for (const std::string& s : f.not_measured) out << "    not measured: " << s << "\n";
    for (const Advice& a : f.advice) out << "    advice: " << a.text << "\n";
  }
  return out.str();
}

std::optional<double> value_in(const Finding& finding, const std::string& name) {
  if (name == "share") return finding.share;
  if (name == "predicted_saving") return finding.predicted_saving;
  if (name == "cost_ms_per_step") return finding.cost_ms_per_step;
  if (name == "rank") return finding.rank ? std::optional<double>(*finding.rank) : std::nullopt;
  for (const Evidence& evidence : finding.evidence)
    if (evidence.name == name) return evidence.value;
  return std::nullopt;
}

std::string texts(const Finding& finding, const std::string& field) {
  if (field == "title") return finding.title;
  if (field == "cause") return finding.cause.value_or("-");
  if (field == "phase") return finding.phase.value_or("-");
  std::string out;
  if (field == "not_measured")
    for (const std::string& one : finding.not_measured) out += one + "\n";
  if (field == "advice")
    for (const Advice& one : finding.advice)
      out += one.text + " " + one.check + " " + one.not_if + "\n";
  return out;
}

class Expectations {
 public:
  explicit Expectations(std::vector<Finding> findings) : findings_(std::move(findings)) {}

  void check(const Words& words, const std::string& line) {
    SCOPED_TRACE(line + "\n" + describe(findings_));
    const std::string& what = words.at(1);
    if (what == "no") {
      EXPECT_EQ(find(words.at(2)), nullptr);
    } else if (what == "verdict") {
      ASSERT_EQ(findings_.front().code, words.at(2));
      check_words(findings_.front(), words, 3);
    } else if (what == "order") {
      Words codes;
      for (const Finding& finding : findings_) codes.push_back(finding.code);
      EXPECT_EQ(codes, Words(words.begin() + 2, words.end()));
    } else {
      const bool is_code = what.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
      const Finding* finding = find(is_code ? what : words.at(2));
      ASSERT_NE(finding, nullptr);
      if (is_code) return check_words(*finding, words, 2);
      if (what != "value") {
        const std::string text = line.substr(line.find(words.at(2)) + words[2].size() + 1);
        EXPECT_NE(texts(*finding, what).find(text), std::string::npos);
        return;
      }
      const auto value = value_in(*finding, words.at(3));
      ASSERT_TRUE(value);
      EXPECT_GE(*value, number_of(words.at(4)));
      EXPECT_LE(*value, number_of(words.at(5)));
    }
  }

 private:
  const Finding* find(const std::string& code) const {
    const auto found = std::find_if(findings_.begin(), findings_.end(),
                                    [&](const Finding& f) { return f.code == code; });
    return found == findings_.end() ? nullptr : &*found;
  }

  static void check_words(const Finding& finding, const Words& words, size_t from) {
    for (size_t i = from; i < words.size(); ++i)
      EXPECT_TRUE(words[i] == severity_name(finding.severity) || words[i] == finding.confidence)
          << words[i];
  }

  std::vector<Finding> findings_;
};

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(STEPSCOPE_SOURCE_DIR "/src/engine/scenarios"))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

class Scenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenario, SaysWhatItMust) {
  std::ifstream file(GetParam());
  Script script;
  std::optional<Expectations> expectations;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    Words words{std::istream_iterator<std::string>(stream), {}};
    if (words.empty() || words[0].starts_with('#')) continue;
    SCOPED_TRACE(line);
    if (words[0] != "expect") {
      ASSERT_FALSE(expectations) << "a line of the run after the first expect";
      script.apply(words);
      continue;
    }
    if (!expectations) expectations.emplace(diagnose(script.run));
    expectations->check(words, line);
  }
  EXPECT_TRUE(expectations) << "expects nothing";
}

INSTANTIATE_TEST_SUITE_P(Files, Scenario, testing::ValuesIn(files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace stepscope::engine
