#include "cli/run_end.h"

#include <boost/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "cli/card_text.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

std::string word(const boost::json::object& object, const char* key) {
  const boost::json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

void say_unfinished(const RunEndView& view) {
  const std::string hint = "stepscope show " + shell_quote(view.folder);
  if (view.others_alive)
    say("other ranks still run: this is the state of now");
  else if (view.interrupted)
    say("interrupted before the summary was written");
  else
    say("the summary was not written in time");
  say_hint("later: " + hint);
}

}  // namespace

std::string first_failing(const std::string& summary_json, const std::string& fail_on) {
  namespace json = boost::json;
  json::error_code error;
  const json::value summary = json::parse(summary_json, error);
  if (error || !summary.is_object()) return "";
  const json::value* findings = summary.get_object().if_contains("findings");
  if (findings == nullptr || !findings->is_array()) return "";
  for (const json::value& entry : findings->get_array()) {
    if (!entry.is_object()) continue;
    const json::object& finding = entry.get_object();
    const std::string severity = word(finding, "severity");
    const bool bad = severity == "critical" || (severity == "warning" && fail_on == "warning");
    if (bad && word(finding, "confidence") != "possible")
      return word(finding, "code") + " is " + severity;
  }
  return "";
}

int show_end(const RunEndView& view) {
  if (!view.quiet)
    for (const std::string& line : std::set<std::string>(view.said.begin(), view.said.end()))
      say(line);
  const auto summary = view.folder.empty()
                           ? Result<std::string>(Error{"this run leaves no files", ""})
                           : read_file(view.folder + "/summary.json");
  if (!view.quiet) {
    if (!view.finished) say_unfinished(view);
    if (!view.interrupted && !view.folder.empty())
      if (const auto card = card_of(view.folder, 2)) (void)write_all(2, card->text);
  }
  if (!summary) {
    if (!view.quiet && view.finished) say_error(summary.error());
    return view.exit_code;
  }
  if (view.json) print(*summary);
  if (view.fail_on.empty() || view.exit_code != 0) return view.exit_code;
  const std::string failing = first_failing(*summary, view.fail_on);
  if (failing.empty()) return view.exit_code;
  if (!view.quiet) say(failing + ": exit code 1 (--fail-on " + view.fail_on + ")");
  return kCheckFailed;
}

}  // namespace stepscope::cli
