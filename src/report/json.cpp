// summary.json. docs/reference/summary.schema.json says the same and strictly.
#include <charconv>
#include <utility>

#include "base/version.h"
#include "report/json_loaders.h"
#include "report/json_text.h"
#include "report/report.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

json::array texts(const std::vector<std::string>& all) {
  json::array out;
  for (const std::string& s : all) out.push_back(text(s));
  return out;
}

std::string_view word(Scope s) {
  switch (s) {
    case Scope::kNode:
      return "node";
    case Scope::kRank:
      return "rank";
    case Scope::kDevice:
      return "device";
    case Scope::kWorker:
      return "worker";
    default:
      return "job";
  }
}

json::object finding(const Finding& f) {
  json::object out;
  out["code"] = text(f.code);
  out["severity"] = severity_name(f.severity);
  out["confidence"] = text(f.confidence);
  out["title"] = text(f.title);
  out["scope"] = word(f.scope);
  out["rank"] = integer(f.rank);
  out["node"] = text_or_null(f.node);
  out["device"] = text_or_null(f.device);
  out["worker"] = text_or_null(f.worker);
  out["phase"] = text_or_null(f.phase);
  out["pattern"] = text_or_null(f.pattern);
  out["cause"] = text_or_null(f.cause);
  out["first_step"] = integer(f.first_step);
  out["last_step"] = integer(f.last_step);
  out["share"] = number(f.share);
  out["cost_ms_per_step"] = number(f.cost_ms_per_step);
  out["predicted_saving"] = number(f.predicted_saving);
  json::array evidence, advice;
  for (const Evidence& e : f.evidence)
    evidence.push_back(
        {{"name", text(e.name)}, {"value", number(e.value)}, {"unit", text(e.unit)}});
  for (const Advice& a : f.advice)
    advice.push_back({{"text", text(a.text)},
                      {"gain", number(a.gain)},
                      {"check", text(a.check)},
                      {"not_if", text(a.not_if)}});
  out["evidence"] = std::move(evidence);
  out["not_measured"] = texts(f.not_measured);
  out["advice"] = std::move(advice);
  out["ended"] = f.ended;
  return out;
}

json::object phases(const std::vector<PhaseRow>& rows, const std::string& clock) {
  json::object out;
  for (const PhaseRow& row : rows)
    out[valid_utf8(row.name)] = json::object{{"measured", row.measured},
                                             {"applicable", row.applicable},
                                             {"mean_ms", number(row.mean_ms)},
                                             {"share", number(row.share)},
                                             {"clock", clock},
                                             {"user", row.user},
                                             {"note", text_or_null(row.note)}};
  return out;
}

json::object steps(const StepsRow& row) {
  return {{"measured", row.mean_ms.has_value()},
          {"count", row.count},
          {"warmup", row.warmup},
          {"failed", row.failed},
          {"profiled", row.profiled},
          {"incomplete", row.incomplete},
          {"mean_ms", number(row.mean_ms)},
          {"median_ms", number(row.median_ms)},
          {"p95_ms", number(row.p95_ms)},
          {"warmup_mean_ms", number(row.warmup_mean_ms)},
          {"exact", row.exact},
          {"micro_steps", number(row.micro_steps)}};
}

json::array ranks(const Summary& s) {
  json::array out;
  for (const RankRow& row : s.ranks)
    out.push_back({{"rank", row.rank},
                   {"node", text_or_null(row.node)},
                   {"steps", row.steps.count},
                   {"warmup", row.steps.warmup},
                   {"failed", row.steps.failed},
                   {"mean_ms", number(row.steps.mean_ms)},
                   {"median_ms", number(row.steps.median_ms)},
                   {"p95_ms", number(row.steps.p95_ms)},
                   {"own_ms", number(row.own_ms)},
                   {"phases", phases(row.phases, s.clock)}});
  return out;
}

// "0.1" of the settings table is the number 0.1.
json::value setting(const std::string& value) {
  int64_t whole = 0;
  double real = 0;
  const char* end = value.data() + value.size();
  if (auto [p, error] = std::from_chars(value.data(), end, whole); error == std::errc{} && p == end)
    return whole;
  if (auto [p, error] = std::from_chars(value.data(), end, real); error == std::errc{} && p == end)
    return number(real);
  return text(value);
}

json::object run(const Summary& s) {
  return {{"name", text(s.name)},
          {"id", text(s.id)},
          {"command", texts(s.command)},
          {"exit_code", integer(s.exit_code)},
          {"state", s.live ? "live" : "ended"},
          {"started", text_or_null(s.started)},
          {"duration_s", number(s.duration_s)},
          {"ranks", s.rank_count},
          {"world_size", s.world_size},
          {"nodes", s.node_count},
          {"versions",
           {{"stepscope", kVersion},
            {"python", text_or_null(s.python_version)},
            {"torch", text_or_null(s.torch_version)}}}};
}

json::array now(const Summary& s) {
  json::array out;
  for (const NowRow& row : s.now)
    out.push_back({{"rank", row.rank},
                   {"node", text_or_null(row.node)},
                   {"phase", text(row.phase)},
                   {"step", row.step},
                   {"since_s", number(row.since_s)},
                   {"alive", row.alive}});
  return out;
}

json::object tree(const Summary& s, bool brief) {
  json::object settings, parts, occurrences, resources, files;
  json::array findings, not_measured;
  for (const auto& [key, value] : s.settings) settings[key] = setting(value);
  for (const Finding& f : s.findings) findings.push_back(finding(f));
  for (const PartRow& row : s.parts)
    parts[row.name] = json::object{{"phase", row.phase},
                                   {"measured", row.mean_ms.has_value()},
                                   {"mean_ms", number(row.mean_ms)},
                                   {"share", number(row.share)}};
  for (const OccurrenceRow& row : s.occurrences)
    occurrences[row.name] = json::object{{"count", row.count},
                                         {"total_ms", number(row.total_ms)},
                                         {"median_ms", number(row.median_ms)}};
  for (const auto& [name, row] : s.resources)
    resources[name] =
        json::object{{"measured", row.measured()},     {"unit", row.unit},
                     {"average", number(row.average)}, {"peak", number(row.peak)},
                     {"limit", number(row.limit)},     {"note", text_or_null(row.note)}};
  for (const NotMeasured& n : s.not_measured)
    not_measured.push_back({{"what", text(n.what)}, {"why", text(n.why)}});
  for (const auto& [name, path] : s.files) files[name] = text(path);

  json::object out;
  out["schema"] = kSummarySchema;
  out["live"] = s.live;
  out["run"] = run(s);
  out["verdict"] = finding(s.verdict);
  out["steps"] = steps(s.steps);
  out["phases"] = phases(s.phases, s.clock);
  out["parts"] = std::move(parts);
  out["occurrences"] = std::move(occurrences);
  out["throughput"] = json::object{{"measured", s.samples_per_s.has_value()},
                                   {"samples_per_s", number(s.samples_per_s)},
                                   {"steps_per_s", number(s.steps_per_s)},
                                   {"over", s.throughput_over}};
  out["findings"] = std::move(findings);
  if (!brief) {
    out["ranks"] = ranks(s);
    out["now"] = now(s);
    out["loaders"] = loaders_json(s);
  }
  out["resources"] = std::move(resources);
  out["stepscope"] = json::object{{"records_written", s.records_written},
                                  {"records_dropped", s.records_dropped},
                                  {"cost_measured", s.cost_us_per_step.has_value()},
                                  {"cost_us_per_step", number(s.cost_us_per_step)}};
  out["unobserved"] = texts(s.unobserved);
  out["notices"] = texts(s.notices);
  out["not_measured"] = std::move(not_measured);
  out["settings"] = std::move(settings);
  out["files"] = std::move(files);
  out["next"] = text(s.next);
  return out;
}

}  // namespace

std::string to_json(const Summary& summary, JsonForm form) {
  return print_json(tree(summary, form == JsonForm::kBrief), form == JsonForm::kPretty);
}

}  // namespace stepscope::report
