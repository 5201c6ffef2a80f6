"""stepscope completion: what it prints is sourced in real shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cli.commands import stepscope
from observing import STEPSCOPE, environment

pytestmark = pytest.mark.fast

BASH = r"""
source <(stepscope completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_stepscope
printf '%s\n' "${COMPREPLY[@]}"
"""
# In an interactive shell of zsh's own pseudo-terminal: its completion runs nowhere else.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
typeset -A seen
zpty -w shell 'PS1= ; autoload -Uz compinit; compinit -u -d $PWD/.zcompdump'
zpty -w shell 'source <(stepscope completion zsh)'
zpty -w shell 'zstyle ":completion:*" list-colors ""; LISTMAX=1000; print ready-$((1+1))'
zpty -m -r shell line '*ready-2*2004h*'  # the line editor is there
zpty -w -n shell "$*"$'\C-d'
zpty -m -r shell line "*$EXPECTED*"
print -r -- "$line"
zpty -d shell
"""
FISH = "stepscope completion fish | source; complete -C (string join ' ' -- $argv)"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name in ("train-1", "train-2"):
        place = f"stepscope-runs/{name}"
        made = stepscope(tmp_path, "simulate", "--steps", "30", "--run-dir", place, "--quiet")
        assert made.code == 0, made.stderr
    (tmp_path / "train.py").touch()
    return tmp_path


def ask(shell: str, folder: Path, *words: str, expected: str = "") -> list[str]:
    """What is offered. zsh shows it on a screen, and is read until `expected`, a pattern, came."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    path = f"{Path(STEPSCOPE).parent}:/usr/local/bin:/usr/bin:/bin"
    env = environment(folder, {"PATH": path, "HOME": str(folder), "TERM": "dumb"})
    env |= {"COLUMNS": "200", "EXPECTED": expected}
    command = {
        "bash": ["bash", "--norc", "-c", BASH, "bash", *words],
        "zsh": ["zsh", "-f", "-c", ZSH, "zsh", *words],
        "fish": ["fish", "--no-config", "-c", FISH, "--", *words],
    }[shell]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == "", done.stderr
    return [line.split("\t")[0].strip() for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_words(runs: Path, shell: str) -> None:
    assert ask(shell, runs, "stepscope", "stat") == ["status"]
    assert ask(shell, runs, "stepscope", "status", "--wat") == ["--watch"]
    assert sorted(ask(shell, runs, "stepscope", "show", "train-")) == ["train-1", "train-2"]
    assert "train-2" in ask(shell, runs, "stepscope", "compare", "train-1", "train-")
    assert "train-2" in ask(shell, runs, "stepscope", "serve", "train-")
    assert ask(shell, runs, "stepscope", "run", "--fail-on", "c") == ["critical"]
    assert ask(shell, runs, "stepscope", "completion", "z") == ["zsh"]
    assert ask(shell, runs, "stepscope", "export", "train-1", "--to", "pe") == ["perfetto"]
    assert ask(shell, runs, "stepscope", "tune", "lo") == ["loader"]
    assert ask(shell, runs, "stepscope", "tune", "loader", "--app") == ["--apply-env"]
    assert "train.py" in ask(shell, runs, "stepscope", "tune", "loader", "python", "tra")
    assert "train.py" in ask(shell, runs, "stepscope", "inspect", "data", "tra")
    # The user's command: files, and no option of ours.
    assert "train.py" in ask(shell, runs, "stepscope", "run", "python", "tra")
    assert "--json" not in ask(shell, runs, "stepscope", "run", "python", "--js")


def test_words_in_zsh(runs: Path) -> None:
    about = "Make up a run of many ranks"  # what it says of simulate
    ask("zsh", runs, "stepscope", "s", expected=f"show*{about}*status")
    ask("zsh", runs, "stepscope", "show", "train-", expected="train-<1-2> *train-<1-2> ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_is_printed_is_valid(tmp_path: Path, shell: str) -> None:
    printed = stepscope(tmp_path, "completion", shell)
    assert (printed.code, printed.stderr) == (0, "")
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    checked = subprocess.run([shell, "-n"], input=printed.stdout, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_command_of_the_help_is_offered(tmp_path: Path) -> None:
    offered = stepscope(tmp_path, "__complete", "").stdout.splitlines()
    names = [line.split("\t")[0] for line in offered]
    text = stepscope(tmp_path, "--help").stdout
    listed = [
        line.split()[0] for line in text.split("Subcommands:")[1].splitlines() if line.strip()
    ]
    assert names == listed
    assert stepscope(tmp_path, "completion", "tcsh").code == 2
