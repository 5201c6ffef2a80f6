#include "simulator/fault.h"

#include <charconv>
#include <string>

#include "base/text.h"

namespace stepscope::simulator {
namespace {

constexpr const char* kExample = "for example: --fault 'rank=17 phase=input add=40ms from=200'";
constexpr double kMostMs = 1e9;

Error bad(std::string_view text, const std::string& why) {
  return {"fault \"" + printable(text, 200) + "\": " + why, kExample};
}

std::string quoted(std::string_view word) { return "\"" + printable(word, 80) + "\""; }

std::optional<double> parse_number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 40ms, 2s, 15% (into share).
bool read_add(std::string_view value, Fault& fault) {
  const auto number = [&](size_t unit) {
    return parse_number_of(value.substr(0, value.size() - unit));
  };
  std::optional<double> amount;
  double factor = 1;
  if (value.ends_with("ms")) {
    amount = number(2);
  } else if (value.ends_with("us")) {
    amount = number(2);
    factor = 1e-3;
  } else if (value.ends_with("s")) {
    amount = number(1);
    factor = 1e3;
  } else if (value.ends_with("%")) {
    amount = number(1);
    if (!amount || !(*amount > 0 && *amount <= 1e6)) return false;
    fault.add_share = *amount / 100;
    return true;
  }
  if (!amount || !(*amount > 0 && *amount * factor <= kMostMs)) return false;
  fault.add_ms = *amount * factor;
  return true;
}

template <typename T>
bool read_count(std::string_view value, T least, std::optional<T>& out) {
  const auto parsed = parse_number<T>(value);
  if (!parsed || *parsed < least) return false;
  out = *parsed;
  return true;
}

Status read_flag(std::string_view text, std::string_view word, Fault& fault) {
  const auto set_who = [&](Who who) -> Status {
    if (fault.who && *fault.who != who && !(who == Who::kSpike && *fault.who == Who::kRank))
      return bad(text, "it has two places: one of rank=, node=, all, rotating, spike");
    fault.who = who;
    return ok();
  };
  if (word == "all") return set_who(Who::kAll);
  if (word == "rotating") return set_who(Who::kRotating);
  if (word == "spike") return set_who(Who::kSpike);
  if (word == "ramp") {
    fault.ramp = true;
    return ok();
  }
  const bool stuck = word == "stuck", leave = word == "leave";
  if (!stuck && !leave && word != "join")
    return bad(text,
               quoted(word) +
                   " is none of rank=, node=, all, rotating, spike, phase=, add=, every=, from=, "
                   "to=, tokens=yes, ramp, stuck, leave, join");
  fault.what = stuck ? What::kStuck : leave ? What::kLeave : What::kJoin;
  return ok();
}

Status read_value(std::string_view text, std::string_view key, std::string_view value,
                  Fault& fault) {
  const auto unreadable = [&](const char* what) -> Status {
    return bad(text, std::string(key) + "=" + printable(value, 80) + " is not " + what);
  };
  std::optional<int32_t> number;
  std::optional<int64_t> steps;
  if (key == "rank" || key == "node") {
    if (!read_count<int32_t>(value, 0, number)) return unreadable("a number from 0 on");
    if (fault.who && *fault.who != Who::kSpike)
      return bad(text, "it has two places: one of rank=, node=, all, rotating, spike");
    if (key == "rank") fault.rank = *number;
    if (!fault.who) fault.who = key == "rank" ? Who::kRank : Who::kNode;
    fault.number = *number;
    return ok();
  }
  if (key == "phase") {
    const auto phase = phase_from_name(value);
    if (!phase || *phase == Phase::kSync)
      return unreadable(
          "a phase of one's own work: input, h2d, forward, backward, optimizer, checkpoint, "
          "validation, compile, gc, profiler, other");
    fault.phase = *phase;
    return ok();
  }
  if (key == "add") {
    if (!read_add(value, fault))
      return unreadable("a time such as 40ms or 2s, or a share of the step such as 15%");
    return ok();
  }
  if (key == "tokens") {
    if (value != "yes" && value != "no") return unreadable("yes or no");
    fault.tokens = value == "yes";
    return ok();
  }
  if (key == "every" || key == "from" || key == "to") {
    if (!read_count<int64_t>(value, key == "every" ? 1 : 0, steps))
      return unreadable("a number of steps");
    if (key == "every") fault.every = *steps;
    if (key == "from") fault.from = *steps;
    if (key == "to") fault.to = *steps;
    return ok();
  }
  return bad(text, quoted(key) + " is none of rank, node, phase, add, every, from, to, tokens");
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  Fault fault;
  for (const std::string_view word : split(text, ' ')) {
    if (trim(word).empty()) continue;
    const size_t equals = word.find('=');
    const Status read =
        equals == std::string_view::npos
            ? read_flag(text, word, fault)
            : read_value(text, word.substr(0, equals), word.substr(equals + 1), fault);
    if (!read) return read.error();
  }
  if (!fault.who)
    return bad(text, "it says nowhere: one of rank=, node=, all, rotating, spike is needed");
  if (fault.what != What::kAdd && *fault.who != Who::kRank)
    return bad(text, "stuck, leave and join need rank=");
  if (fault.what == What::kAdd && fault.add_ms <= 0 && fault.add_share <= 0)
    return bad(text, "add= is missing: how much longer");
  if (fault.to && *fault.to < fault.from) return bad(text, "to= is before from=");
  return fault;
}

}  // namespace stepscope::simulator
