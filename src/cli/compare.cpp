// stepscope compare: what changed between two runs, in which phase and on which ranks, and whether it is real.
#include <charconv>
#include <cmath>
#include <memory>
#include <system_error>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "cli/stored_run.h"
#include "report/difference.h"

namespace stepscope::cli {
namespace {

struct CompareOptions {
  std::string a, b, max_slowdown;
  bool json = false, anyway = false;
};

// "5%", "0.5 %", "0.05".
Result<double> parse_share(const std::string& text) {
  std::string_view number = trim(text);
  const bool percent = number.ends_with('%');
  if (percent) number = trim(number.substr(0, number.size() - 1));
  double share = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), share);
  const bool whole = error == std::errc{} && end == number.data() + number.size();
  if (percent) share /= 100;
  if (!whole || !std::isfinite(share) || share < 0 || (!percent && share >= 1))
    return Error{"--max-slowdown " + shell_quote(printable(text, 80)) + " is no share of a step",
                 "write it like 5% or 0.05"};
  return share;
}

int compare(const CompareOptions& options) {
  report::DifferenceOptions wanted;
  wanted.anyway = options.anyway;
  if (!options.max_slowdown.empty()) {
    const auto share = parse_share(options.max_slowdown);
    if (!share) return wrong_use(share.error());
    wanted.max_slowdown = *share;
  }
  const auto a = stored_run(options.a);
  if (!a) return wrong_use(a.error());
  const auto b = stored_run(options.b);
  if (!b) return wrong_use(b.error());
  const auto difference = report::difference(*a, *b, wanted);
  if (!difference) return wrong_use(difference.error());
  print(options.json ? report::to_json(*difference) + "\n"
                     : report::card(*difference, report::style_for(1)));
  return difference->exceeded ? kCheckFailed : kFine;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* compare_app =
      app.add_subcommand("compare", "Say what changed from run A to run B, and whether it is real");
  compare_app->footer(
      "Steady steps only. A change is real when its 99 % interval excludes 0 and it is at least 1 "
      "%\n"
      "of a step. Exit code 1: slower by more than --max-slowdown, and that is real; 2: the runs\n"
      "cannot be compared.");
  compare_app->add_option("A", options->a, "The run before: folder, name or id")->required();
  compare_app->add_option("B", options->b, "The run after")->required();
  compare_app
      ->add_option("--max-slowdown", options->max_slowdown,
                   "Exit with 1 when B really takes longer a step than A by more than this")
      ->option_text("5%");
  compare_app->add_flag("--anyway", options->anyway,
                        "Also where a step is not the same work (ranks, batch) in both");
  compare_app->add_flag("--json", options->json, "Print one JSON object");
  compare_app->callback([&action, options] { action = [options] { return compare(*options); }; });
}

}  // namespace stepscope::cli
