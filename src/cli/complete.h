// What may stand where the cursor is, from the declarations of the command line themselves: there is
// no second table. What a value is, its text says: RUN (also A, B and WHAT) a run, FILE, DIR, a|b|c one of
// these, KEY=VALUE a setting.
//
// Thread safety: reentrant; reads folders.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace stepscope::cli {

struct Candidate {
  std::string word, about;
};

struct Completion {
  std::vector<Candidate> words;  // that begin as the last word does
  bool files = false, folders = false;
  std::optional<size_t> command;  // the user's own command begins at this word: its completion
};

// words: without the program's name; the last one is being written and may be empty.
Completion complete(CLI::App& app, const std::vector<std::string>& words);

// A line each: `word<TAB>about`, and :files, :folders, :command N.
std::string lines_of(const Completion& completion);

}  // namespace stepscope::cli
