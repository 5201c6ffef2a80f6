// stepscope completion: a shell's few lines that ask `stepscope __complete WORDS...` what may stand
// where the cursor is (complete.h). Nothing in them names a command or an option of ours.
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/say.h"

namespace stepscope::cli {
namespace {

constexpr const char* kBash =
    R"script(# bash completion of stepscope:  source <(stepscope completion bash)
_stepscope() {
  local cur=${COMP_WORDS[COMP_CWORD]} line at
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files)
        compopt -o filenames 2> /dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
        ;;
      :folders)
        compopt -o filenames 2> /dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$cur")
        ;;
      ":command "*)
        at=$((${line#:command } + 1))
        if ((COMP_CWORD > at)) && declare -F _command_offset > /dev/null; then
          _command_offset "$at"
        else
          compopt -o filenames 2> /dev/null
          while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
            ((COMP_CWORD > at)) || compgen -c -- "$cur"
            compgen -f -- "$cur"
          )
        fi
        ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2> /dev/null
  return 0
}
complete -F _stepscope stepscope
)script";

constexpr const char* kZsh = R"script(#compdef stepscope
# zsh completion of stepscope:  source <(stepscope completion zsh)
_stepscope() {
  local line word
  local -a described
  for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      '') ;;
      :files) _files ;;
      :folders) _files -/ ;;
      :command\ *)
        shift $((${line#:command } + 1)) words
        ((CURRENT -= ${line#:command } + 1))
        if ((CURRENT == 1)); then
          _command_names -e
          _files
        else
          _normal
        fi
        ;;
      *)
        word=${line%%$'\t'*}
        word=${word//:/\\:}
        [[ $line == *$'\t'* ]] && word+=":${line#*$'\t'}"
        described+=("$word")
        ;;
    esac
  done
  ((${#described})) && _describe -V stepscope described
}
if [[ ${funcstack[1]-} == _stepscope ]]; then
  _stepscope "$@"
else
  compdef _stepscope stepscope
fi
)script";

constexpr const char* kFish =
    R"script(# fish completion of stepscope:  stepscope completion fish | source
function __stepscope_complete
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    test (count $last) -gt 0; or set last ''
    set -l words $before[2..] $last
    for line in ($before[1] __complete $words 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path $last
            case ':folders'
                __fish_complete_directories $last
            case ':command *'
                set -l at (math (string replace ':command ' '' -- $line) + 1)
                test (count $words) -eq $at; and __fish_complete_path $last
                complete -C (string join ' ' -- (string escape -- $words[$at..-2]) "$last")
            case '*'
                echo $line
        end
    end
end
complete -c stepscope -f -k -a '(__stepscope_complete)'
)script";

int print_script(const std::string& shell) {
  print(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  return kFine;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion_app = app.add_subcommand(
      "completion", "Print what completes commands, options and runs in a shell");
  completion_app->footer(
      "bash: source <(stepscope completion bash), in ~/.bashrc\n"
      "zsh:  source <(stepscope completion zsh), in ~/.zshrc after compinit\n"
      "fish: stepscope completion fish > ~/.config/fish/completions/stepscope.fish");
  completion_app->add_option("SHELL", *shell, "bash, zsh or fish")
      ->option_text("bash|zsh|fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion_app->callback([&action, shell] { action = [shell] { return print_script(*shell); }; });
}

}  // namespace stepscope::cli
