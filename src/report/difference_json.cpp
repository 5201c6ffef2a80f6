// The JSON of `stepscope compare A B --json`. docs/reference/compare.schema.json says the same and strictly.
#include "base/version.h"
#include "report/difference.h"
#include "report/json_text.h"

namespace stepscope::report {
namespace {

json::object change_json(const engine::Change& change) {
  return {{"a_ms", number(change.a_ms)},           {"b_ms", number(change.b_ms)},
          {"change_ms", number(change.change_ms)}, {"low_ms", number(change.low_ms)},
          {"high_ms", number(change.high_ms)},     {"real", change.real}};
}

json::object side(const Summary& s) {
  return {{"name", text(s.name)},
          {"id", text(s.id)},
          {"folder", text(s.folder)},
          {"started", text_or_null(s.started)},
          {"state", s.live ? "live" : "ended"},
          {"exit_code", integer(s.exit_code)},
          {"ranks", s.rank_count},
          {"world_size", s.world_size},
          {"steps", s.steps.count},
          {"warmup", s.steps.warmup},
          {"mean_ms", number(s.steps.mean_ms)},
          {"median_ms", number(s.steps.median_ms)},
          {"p95_ms", number(s.steps.p95_ms)},
          {"samples_per_s", number(s.samples_per_s)},
          {"steps_per_s", number(s.steps_per_s)},
          {"verdict", json::object{{"code", text(s.verdict.code)},
                                   {"severity", severity_name(s.verdict.severity)},
                                   {"title", text(s.verdict.title)}}}};
}

json::object resources(const Difference& d) {
  json::object out;
  for (const auto& [name, b] : d.b.resources) {
    const auto it = d.a.resources.find(name);
    if (it == d.a.resources.end()) continue;
    out[name] = json::object{{"unit", b.unit},
                             {"a_average", number(it->second.average)},
                             {"b_average", number(b.average)},
                             {"a_peak", number(it->second.peak)},
                             {"b_peak", number(b.peak)}};
  }
  return out;
}

std::string_view word(engine::Obstacle obstacle) {
  return obstacle == engine::Obstacle::kWork     ? "work"
         : obstacle == engine::Obstacle::kTooFew ? "too_few"
                                                 : "remark";
}

}  // namespace

std::string to_json(const Difference& d, bool pretty) {
  json::object step = change_json(d.change.step);
  step["share"] = number(d.change.share);
  step["low_share"] = number(d.change.low_share);
  step["high_share"] = number(d.change.high_share);
  step["detectable_share"] = number(d.change.detectable_share);
  json::object phases;
  for (const engine::PhaseChange& phase : d.change.phases) {
    json::object row = change_json(phase.change);
    row["user"] = phase.user;
    phases[text(phase.name).as_string()] = std::move(row);
  }
  json::array ranks, from, remarks;
  for (const engine::RankChange& rank : d.change.ranks)
    ranks.push_back(json::object{{"rank", rank.rank},
                                 {"node", text_or_null(rank.node)},
                                 {"own", change_json(rank.own)},
                                 {"phase", text_or_null(rank.phase)},
                                 {"phase_change_ms", number(rank.phase_change_ms)}});
  for (const int32_t rank : d.change.from_ranks) from.push_back(rank);
  for (const engine::Incomparable& one : d.remarks)
    remarks.push_back(json::object{{"what", text(one.what)},
                                   {"obstacle", word(one.obstacle)},
                                   {"a", text_or_null(one.a)},
                                   {"b", text_or_null(one.b)},
                                   {"text", text(one.text)}});
  json::object out;
  out["schema"] = kDifferenceSchema;
  out["stepscope"] = kVersion;
  out["verdict"] = json::object{{"code", d.code},
                                {"title", text(d.title)},
                                {"real", d.change.step.real},
                                {"from", text_or_null(d.from)}};
  out["limit"] =
      d.max_slowdown
          ? json::value(json::object{{"max_slowdown", *d.max_slowdown}, {"exceeded", d.exceeded}})
          : json::value(nullptr);
  out["level"] = 1 - engine::kChangeLevel;
  out["a"] = side(d.a);
  out["b"] = side(d.b);
  out["step"] = std::move(step);
  out["phases"] = std::move(phases);
  out["ranks"] = std::move(ranks);
  out["from_ranks"] = std::move(from);
  out["warmup"] = json::object{{"a_ms", number(d.change.warmup.a_ms)},
                               {"b_ms", number(d.change.warmup.b_ms)},
                               {"change_ms", number(d.change.warmup.change_ms)}};
  out["throughput"] = json::object{{"a_samples_per_s", number(d.a.samples_per_s)},
                                   {"b_samples_per_s", number(d.b.samples_per_s)},
                                   {"share", number(d.samples_per_s_share)}};
  out["steps"] = json::object{{"a", d.change.steps_a}, {"b", d.change.steps_b}};
  out["resources"] = resources(d);
  out["remarks"] = std::move(remarks);
  return print_json(out, pretty);
}

}  // namespace stepscope::report
