#include "exporter/table.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <iterator>
#include <utility>
#include <vector>

#include "exporter/step_phases.h"
#include "report/json_text.h"
#include "report/phases.h"
#include "report/text.h"

namespace stepscope::exporter {
namespace {

struct Count {
  const char* name;
  int64_t (*of)(const StepSample&);
};
constexpr std::array kCounts = {
    Count{"fetches", [](const StepSample& s) { return int64_t{s.fetches}; }},
    Count{"backwards", [](const StepSample& s) { return int64_t{s.backwards}; }},
    Count{"optimizer_steps", [](const StepSample& s) { return int64_t{s.optimizer_steps}; }},
    Count{"skipped_steps", [](const StepSample& s) { return int64_t{s.skipped_steps}; }},
    Count{"syncs", [](const StepSample& s) { return int64_t{std::ssize(s.syncs)}; }}};

struct Flag {
  const char* name;
  bool StepSample::* of;
};
constexpr std::array kFlags = {
    Flag{"warmup", &StepSample::warmup},     Flag{"failed", &StepSample::failed},
    Flag{"profiled", &StepSample::profiled}, Flag{"compiled", &StepSample::compiled},
    Flag{"paused", &StepSample::paused},     Flag{"incomplete", &StepSample::incomplete}};

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

void add_ms(std::string& line, int64_t ns) {
  fmt::format_to(std::back_inserter(line), "{:.6f}", static_cast<double>(ns) / 1e6);
}

}  // namespace

Table::Table(RunHistory run, StepsOf steps, std::set<std::string> users)
    : run_(std::move(run)),
      steps_(std::move(steps)),
      users_(std::move(users)),
      clocks_(run_),
      measured_(report::measured_phases(run_)) {}

Result<Table> Table::of(RunHistory run, StepsOf steps) {
  std::set<std::string> users;
  for (RankHistory& rank : run.ranks) {
    auto all = steps(rank.rank);
    if (!all) return all.error();
    for (const StepSample& step : *all) {
      const StepPhases phases = phases_of(step);
      for (const auto& [name, ns] : phases.user_ns) users.insert(name);
      for (size_t p = 0; p < kPhaseCount; ++p)
        rank.phases_seen |= static_cast<uint32_t>(phases.ns[p] > 0) << p;
    }
    // What the clocks are read from.
    constexpr size_t kept = Clocks::kLookedAt;
    rank.raw.clear();
    for (size_t i = 0; i < all->size(); ++i)
      if (i < kept || i + kept >= all->size()) rank.raw.push_back(std::move((*all)[i]));
  }
  return Table(std::move(run), std::move(steps), std::move(users));
}

std::vector<Table::Column> Table::columns() const {
  std::vector<Column> all = {{"rank", "int32"}, {"node", "string"},     {"attempt", "int32"},
                             {"step", "int64"}, {"begin_ms", "double"}, {"total_ms", "double"}};
  for (const std::string_view name : kPhaseNames)
    all.push_back({std::string(name) + "_ms", "double"});
  all.push_back({"loss_ms", "double"});
  all.push_back({"epoch_start_ms", "double"});
  for (const Flag& flag : kFlags) all.push_back({flag.name, "bool"});
  all.push_back({"samples", "int64"});
  for (const Count& count : kCounts) all.push_back({count.name, "int64"});
  for (const std::string& name : users_)
    all.push_back({"user." + report::valid_utf8(name) + "_ms", "double"});
  return all;
}

std::string Table::columns_json() const {
  report::json::array all;
  for (const Column& column : columns())
    all.push_back(report::json::array{report::text(column.name), column.type});
  return report::json::serialize(all);
}

void Table::add_row(size_t position, const StepSample& step, std::string& line) const {
  auto end = std::back_inserter(line);
  fmt::format_to(end, "{},", step.step);
  add_ms(line, clocks_.since_start_ns(position, step.begin_ns));
  line += ',';
  add_ms(line, step.total_ns());
  const StepPhases phases = phases_of(step);
  for (size_t p = 0; p < kPhaseCount; ++p) {
    line += ',';
    if (measured_[p] || phases.ns[p] > 0) add_ms(line, phases.ns[p]);
  }
  for (const int64_t ns : {step.parts.loss_ns, step.parts.epoch_start_ns}) {
    line += ',';
    add_ms(line, ns);
  }
  for (const Flag& flag : kFlags) line += step.*flag.of ? ",true" : ",false";
  line += ',';
  if (step.samples) fmt::format_to(end, "{}", *step.samples);
  for (const Count& count : kCounts) fmt::format_to(end, ",{}", count.of(step));
  for (const std::string& name : users_) {
    line += ',';
    const auto it = phases.user_ns.find(name);
    add_ms(line, it == phases.user_ns.end() ? 0 : it->second);
  }
  line += '\n';
}

Status Table::write_rows(Output& out) const {
  std::string line;
  for (size_t r = 0; r < run_.ranks.size() && !out.failed(); ++r) {
    const RankHistory& rank = run_.ranks[r];
    const auto steps = steps_(rank.rank);
    if (!steps) return steps.error();
    const std::string head =
        fmt::format("{},{},{},", rank.rank, quoted(report::valid_utf8(rank.node)), rank.attempt);
    for (const StepSample& step : *steps) {
      line = head;
      add_row(r, step, line);
      out.write(line);
      if (out.failed()) break;
    }
  }
  return ok();
}

Status Table::write_csv(Output& out) const {
  std::string names;
  for (const Column& column : columns()) names += (names.empty() ? "" : ",") + quoted(column.name);
  out.write(names + "\n");
  return write_rows(out);
}

}  // namespace stepscope::exporter
