// stepscope doctor: what works here, a line each.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/install.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

const char* word(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kWarn:
      return "warn";
    case Health::kFail:
      return "fail";
  }
  return "fail";
}

std::string lines(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{:<4}  {:<17}  {}\n", word(check.health), check.name, check.found);
    if (!check.hint.empty()) text += fmt::format("{:<25}hint: {}\n", "", check.hint);
  }
  return text;
}

std::string as_json(const std::vector<Check>& checks) {
  namespace json = boost::json;
  json::array list;
  for (const Check& check : checks)
    list.push_back(json::object{
        {"name", check.name},
        {"health", word(check.health)},
        {"found", check.found},
        {"hint", check.hint.empty() ? json::value(nullptr) : json::value(check.hint)}});
  return json::serialize(json::object{{"schema", 1}, {"checks", std::move(list)}}) + "\n";
}

int doctor(bool json) {
  const Surroundings where{.environment = current_environment(),
                           .binary = own_path(),
                           .cwd = absolute_path("."),
                           .root = ""};
  const std::vector<Check> checks = check_all(where);
  print(json ? as_json(checks) : lines(checks));
  const bool failed = std::any_of(checks.begin(), checks.end(),
                                  [](const Check& check) { return check.health == Health::kFail; });
  return failed ? kCheckFailed : kFine;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* doctor_app = app.add_subcommand("doctor", "Check what works on this machine");
  doctor_app->footer("Exit code 1 when a line says fail.");
  doctor_app->add_flag("--json", *json, "Print one JSON object");
  doctor_app->callback([&action, json] { action = [json] { return doctor(*json); }; });
}

}  // namespace stepscope::cli
