#include "cli/complete.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/identity.h"
#include "cli/run_folder.h"
#include "cli/run_list.h"
#include "model/settings.h"

namespace stepscope::cli {
namespace {

constexpr size_t kMostRuns = 100;
using Words = std::vector<std::string>;

class Completer {
 public:
  explicit Completer(std::string prefix) : prefix_(std::move(prefix)) {}

  void add(const std::string& word, const std::string& about) {
    // What would not survive a shell's line is left out: nobody types it.
    if (!word.starts_with(prefix_) || printable(word) != word) return;
    out_.words.push_back({word, about.substr(0, about.find('\n'))});
  }

  void commands(const CLI::App& app) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      if (!command->get_group().empty()) add(command->get_name(), command->get_description());
  }

  // Long names; one that was given already only if it may be repeated.
  void options(const CLI::App& app, const Words& before) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group().empty() || option->get_positional()) continue;
      for (const std::string& name : option->get_lnames()) {
        const std::string word = "--" + name;
        const bool given = std::find(before.begin(), before.end(), word) != before.end();
        const bool repeats = option->get_items_expected_max() > 1 ||
                             option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
        if (!given || repeats) add(word, option->get_description());
      }
    }
  }

  void value(const CLI::Option& option) {
    const std::string text =
        option.get_option_text().empty() ? option.get_name(true) : option.get_option_text();
    const auto parts = split(text, '|');
    for (std::string_view part : parts) {
      if (part.starts_with('[') && part.ends_with(']')) part = part.substr(1, part.size() - 2);
      const bool is_run = part == "RUN" || part == "A" || part == "B" || part == "WHAT";
      if (is_run) runs();
      if (part == "FILE" || part == "PATH") out_.files = true;
      if (part == "DIR" || is_run) out_.folders = true;
      if (part == "KEY=VALUE")
        for (const auto& [key, preset] : Settings().effective())
          add(key + "=", "default: " + preset);
      const bool choice = parts.size() > 1 && !part.empty() && std::islower(part.front()) != 0;
      if (choice) add(std::string(part), "");
    }
  }

  void command_from(size_t index) { out_.command = index; }
  Completion take() { return std::move(out_); }

 private:
  // Names, newest first. Of a run only its folder is looked at: a list of a thousand comes at once.
  void runs() {
    std::vector<std::pair<int64_t, std::string>> found;
    for (const std::string& place : run_places(absolute_path("."), current_environment()))
      for (const std::string& name : list_folder(place)) {
        struct stat st;
        const std::string folder = place + "/" + name;
        if (::stat(folder.c_str(), &st) == 0 && holds_run(folder))
          found.emplace_back(-int64_t{st.st_mtim.tv_sec}, name);
      }
    std::sort(found.begin(), found.end());
    for (size_t i = 0; i < found.size() && i < kMostRuns; ++i) add(found[i].second, "run");
  }

  std::string prefix_;
  Completion out_;
};

// Where the last of `words` stands among the arguments of a command: the option that it is the
// value of, else how many positional ones came before.
struct Place {
  const CLI::Option* value_of = nullptr;
  size_t positional = 0;
  bool options_end = false;  // "--" was given
};
Place place_of(const CLI::App& command, const Words& before) {
  Place place;
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string& word = before[i];
    if (place.options_end || !word.starts_with('-') || word == "-") {
      ++place.positional;
    } else if (word == "--") {
      place.options_end = true;
    } else {
      const CLI::Option* option = command.get_option_no_throw(word);
      if (option == nullptr || option->get_items_expected_max() == 0) continue;
      if (i + 1 == before.size()) place.value_of = option;
      ++i;
    }
  }
  return place;
}

void positional(Completer& completer, const CLI::App& command, size_t number) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    if (number == 0 || option->get_items_expected_max() > 1) return completer.value(*option);
    --number;
  }
}

}  // namespace

Completion complete(CLI::App& app, const Words& words) {
  const std::string last = words.empty() ? "" : words.back();
  Completer completer(last);
  if (words.size() <= 1) {
    completer.commands(app);
    if (last.starts_with('-')) completer.options(app, {});
    return completer.take();
  }
  CLI::App* command = find_command(app, words[0]);
  if (command == nullptr || command->get_group().empty()) return completer.take();
  size_t depth = 1;
  for (; !command->get_subcommands(nullptr).empty(); ++depth) {  // tune loader, inspect data
    if (words.size() == depth + 1) {
      completer.commands(*command);
      return completer.take();
    }
    command = find_command(*command, words[depth]);
    if (command == nullptr) return completer.take();
  }
  const Words before(words.begin() + static_cast<long>(depth), words.end() - 1);
  const Place place = place_of(*command, before);
  const bool takes_command = words[0] == "run" || words[0] == "tune";
  if (takes_command && (place.positional > 0 || place.options_end)) {
    const RunWords split = split_run_words(*command, before);
    completer.command_from(words.size() - 1 - split.command.size());
  } else if (place.value_of != nullptr) {
    completer.value(*place.value_of);
  } else if (last.starts_with('-') && !place.options_end) {
    completer.options(*command, before);
  } else if (takes_command) {
    completer.command_from(words.size() - 1);
  } else {
    positional(completer, *command, place.positional);
  }
  return completer.take();
}

std::string lines_of(const Completion& completion) {
  std::string text;
  std::set<std::string> seen;
  for (const Candidate& candidate : completion.words) {
    if (!seen.insert(candidate.word).second) continue;
    text += candidate.word + (candidate.about.empty() ? "" : "\t" + candidate.about) + "\n";
  }
  if (completion.folders && !completion.files) text += ":folders\n";
  if (completion.files) text += ":files\n";
  if (completion.command) text += ":command " + std::to_string(*completion.command) + "\n";
  return text;
}

}  // namespace stepscope::cli
