#include "cli/say.h"

#include "base/file.h"

namespace stepscope::cli {

void say(const std::string& line) { (void)write_all(2, "stepscope: " + line + "\n"); }

void say_error(const Error& error) {
  std::string text = "stepscope: " + error.message + "\n";
  if (!error.hint.empty()) text += "hint: " + error.hint + "\n";
  (void)write_all(2, text);
}

int wrong_use(const Error& error) {
  say_error(error);
  return kWrongUse;
}

void say_hint(const std::string& hint) { (void)write_all(2, "hint: " + hint + "\n"); }

void print(const std::string& text) { (void)write_all(1, text); }

}  // namespace stepscope::cli
