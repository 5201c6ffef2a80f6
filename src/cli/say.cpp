#include "cli/say.h"

#include <cerrno>

#include "base/file.h"
#include "base/text.h"

namespace stepscope::cli {
namespace {

bool g_output_lost = false;

}  // namespace

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

void print(const std::string& text) {
  if (write_all(1, text) || errno == EPIPE || g_output_lost)
    return;  // a reader may have had enough
  g_output_lost = true;
  say("cannot write to stdout: " + errno_text());
}

bool output_lost() { return g_output_lost; }

}  // namespace stepscope::cli
