#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/text.h"
#include "report/report.h"

namespace stepscope::report {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

// As the C library chooses: LC_ALL, else LC_CTYPE, else LANG.
bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = environment(name);
    if (value == nullptr) continue;
    const std::string lower = lower_case(value);
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

CardStyle style_for(int fd) {
  const char* terminal = environment("TERM");
  CardStyle style;
  style.unicode = is_utf8_locale();
  style.colour = isatty(fd) == 1 && environment("NO_COLOR") == nullptr && terminal != nullptr &&
                 std::string(terminal) != "dumb";
  return style;
}

}  // namespace stepscope::report
