#include "report/view_words.h"

#include "base/text.h"

namespace stepscope::report {
namespace {

constexpr size_t kMostShown = 100;  // bytes of a stranger's value

}  // namespace

std::optional<std::string> ViewWords::text(std::string_view key) {
  known_ += (known_.empty() ? "" : ", ") + std::string(key);
  const auto at = words_.find(std::string(key));
  if (at == words_.end()) return std::nullopt;
  std::string value = std::move(at->second);
  words_.erase(at);
  return value;
}

void ViewWords::refuse(std::string_view key, std::string_view value, const std::string& hint) {
  if (!error_)
    error_ =
        Error{std::string(key) + "=" + printable(value, kMostShown) + " is not understood", hint};
}

int64_t ViewWords::number(std::string_view key, int64_t absent, int64_t least, int64_t most) {
  const auto word = text(key);
  if (!word) return absent;
  const auto number = parse_number<int64_t>(*word);
  if (number && *number >= least && *number <= most) return *number;
  refuse(key, *word,
         most == std::numeric_limits<int64_t>::max()
             ? "a whole number from " + std::to_string(least) + " on"
             : "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return absent;
}

std::string ViewWords::one_of(std::string_view key, std::initializer_list<std::string_view> words) {
  const auto word = text(key);
  if (!word) return std::string(*words.begin());
  std::string all;
  for (const std::string_view known : words) {
    if (*word == known) return *word;
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  refuse(key, *word, "one of: " + all);
  return std::string(*words.begin());
}

std::optional<int32_t> ViewWords::rank(const RunHistory& run) {
  const auto word = text("rank");
  if (!word) return std::nullopt;
  const auto number = parse_number<int32_t>(*word);
  for (const RankHistory& rank : run.ranks)
    if (number && rank.rank == *number) return *number;
  refuse("rank", *word,
         run.ranks.empty() ? "no rank was seen yet"
                           : std::to_string(run.ranks.size()) + " ranks were seen, the last is " +
                                 std::to_string(run.ranks.back().rank));
  return std::nullopt;
}

StepRange ViewWords::range() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  StepRange range{number("from", 0, 0, kMost), number("to", kMost, 0, kMost)};
  if (range.to < range.from)
    refuse("to", std::to_string(range.to), "a step from " + std::to_string(range.from) + " on");
  return range;
}

Status ViewWords::done() {
  if (error_) return *error_;
  if (words_.empty()) return ok();
  return Error{
      printable(words_.begin()->first, kMostShown) + " is nothing that " + view_ + " knows",
      "it knows: " + known_};
}

}  // namespace stepscope::report
