// What the command line says to people: on stderr, plain words, one thing a line.
//
// Thread safety: one write a call. Exit codes of every command but `run`: see Exit.
#pragma once

#include <string>

#include "base/result.h"

namespace stepscope::cli {

enum Exit { kFine = 0, kCheckFailed = 1, kWrongUse = 2 };

void say(const std::string& line);   // "stepscope: line"
void say_error(const Error& error);  // the same, and "hint: ..." below it
int wrong_use(const Error& error);   // says it: the exit code to end with
void say_hint(const std::string& hint);
void print(const std::string& text);  // stdout, as it is; says it once when that takes nothing
bool output_lost();                   // it took nothing: no command but `run` ends well then

}  // namespace stepscope::cli
