// Text for a terminal: strings of strangers made harmless, columns counted, lines folded.
//
// A run name, a phase name, a command come from outside: control characters, bidirectional marks
// and broken UTF-8 are shown as escapes (\x1b, \u202e), and everything outside ASCII too when the
// terminal has only that. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepscope::report {

std::string valid_utf8(std::string_view text);  // broken bytes become U+FFFD: what JSON can carry
std::string visible(std::string_view text,
                    bool unicode);  // one line, nothing that drives a terminal

// Columns that `visible` text takes: wide characters two, combining ones none.
int columns(std::string_view text);

std::string pad_left(std::string_view text, int width);
std::string pad_right(std::string_view text, int width);
std::string cut(std::string_view text, int width,
                bool unicode);  // at most width, with an ellipsis where it was cut

// Folds at blanks; a word longer than a line is broken, after a slash where it has one. Widths in
// columns.
std::vector<std::string> fold(std::string_view text, int first_width, int width);

}  // namespace stepscope::report
