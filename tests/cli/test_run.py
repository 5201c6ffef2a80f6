"""`stepscope run`: the child's exit code and stdout, where files go, what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli.commands import only_run, script, stepscope, summary_in
from observing import ROOT, STEPSCOPE, environment

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_exit_code_is_the_childs(tmp_path: Path, code: int) -> None:
    assert stepscope(tmp_path, "run", "sh", "-c", f"exit {code}").code == code
    assert summary_in(only_run(tmp_path))["run"]["exit_code"] == code


@pytest.mark.parametrize("name", ["TERM", "KILL", "INT", "SEGV", "USR1"])
def test_killed_by_a_signal(tmp_path: Path, name: str) -> None:
    code = 128 + getattr(signal, f"SIG{name}")
    assert stepscope(tmp_path, "run", "sh", "-c", f"kill -{name} $$").code == code
    assert summary_in(only_run(tmp_path))["run"]["exit_code"] == code


def test_not_found_is_127_and_leaves_nothing(tmp_path: Path) -> None:
    done = stepscope(tmp_path, "run", "no-such-command-here", "x")
    assert done.code == 127
    assert "no-such-command-here" in done.stderr
    assert "hint:" in done.stderr
    assert not list(tmp_path.glob("stepscope-runs/*"))


def test_not_executable_is_126(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("echo hello\n")
    done = stepscope(tmp_path, "run", "./plain")
    assert done.code == 126
    assert "Permission denied" in done.stderr
    assert stepscope(tmp_path, "run", "/").code == 126


def test_output_and_arguments_are_the_childs_own(tmp_path: Path) -> None:
    child = script(tmp_path, 'printf "%s|" "$@"; echo "to stderr" >&2')
    words = ["--name", "x", "--", "--json", "", "a b", "--version"]
    done = stepscope(tmp_path, "run", "--quiet", child, *words)
    assert done.stdout == "".join(f"{word}|" for word in words)
    assert done.stderr.replace(MISSING_PYTHON, "") == "to stderr\n"
    assert stepscope(tmp_path, "run", "--quiet", "--", child, "-x").stdout == "-x|"


MISSING_PYTHON = ""  # --quiet silences that too


def test_the_child_gets_its_surroundings_as_they_were(tmp_path: Path) -> None:
    """Mask, dispositions, descriptors, group, session, priority: as without us."""
    probe = (
        "import os,signal,sys,resource;"
        "print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),"
        "[str(signal.getsignal(s)) for s in sorted(signal.valid_signals()) if s not in (9, 19)],"
        "sorted(os.listdir('/proc/self/fd')), os.getpgrp(), os.getsid(0), os.nice(0),"
        "os.umask(0o77), os.getcwd(), resource.getrlimit(resource.RLIMIT_NOFILE), os.isatty(0))"
    )
    command = ["python3", "-I", "-c", probe]
    bare = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert stepscope(tmp_path, "run", *command).stdout == bare.stdout


def test_closed_streams_stay_closed_and_nothing_of_ours_takes_their_numbers(tmp_path: Path) -> None:
    """What is meant for people would be written into whatever has the number 1 or 2."""
    child = script(
        tmp_path,
        f"ls -l /proc/self/fd | grep -c ' [012] ' > {tmp_path}/open\n"
        f"readlink /proc/$PPID/fd/0 /proc/$PPID/fd/1 /proc/$PPID/fd/2 > {tmp_path}/ours; exit 3\n",
    )
    counts: list[str] = []
    for words in ([child], [STEPSCOPE, "run", "--run-dir", "run", child]):
        done = subprocess.run(
            ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            check=False,
        )
        assert done.returncode == 3
        counts.append((tmp_path / "open").read_text())
    assert counts[0] == counts[1]
    assert (tmp_path / "ours").read_text().split() == ["/dev/null"] * 3


def test_inherited_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    child = "trap '' HUP PIPE CHLD; exec \"$0\" run --quiet sh -c 'grep SigIgn /proc/self/status'"
    bare = "trap '' HUP PIPE CHLD; exec sh -c 'grep SigIgn /proc/self/status'"
    from observing import STEPSCOPE

    ours = subprocess.run(
        ["sh", "-c", child, STEPSCOPE], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    theirs = subprocess.run(["sh", "-c", bare], capture_output=True, text=True, check=True)
    assert ours.stdout == theirs.stdout


def test_environment_gains_only_what_the_design_says(tmp_path: Path) -> None:
    env = {"ODD": "a\nb=c", "PYTHONPATH": "/mine"}
    bare = set(
        stepscope(tmp_path, "run", "env", "-0", env=env | {"STEPSCOPE": "0"}).stdout.split("\0")
    )
    seen = set(stepscope(tmp_path, "run", "--quiet", "env", "-0", env=env).stdout.split("\0"))
    lost = {entry.split("=")[0] for entry in bare - seen}
    gained = {entry.split("=")[0] for entry in seen - bare}
    assert lost <= {"PYTHONPATH", "STEPSCOPE"}
    assert gained - {"PYTHONPATH"} == {
        "STEPSCOPE_SEGMENTS",
        "STEPSCOPE_RUN_ID",
        "STEPSCOPE_SEGMENT_KB",
        "STEPSCOPE_WORKER_SEGMENT_KB",
        "STEPSCOPE_SHM_SHARE",
    }
    for entry in seen:
        if entry.startswith("PYTHONPATH="):
            assert entry.endswith("/mine")


def test_off_switch_is_a_plain_exec(tmp_path: Path) -> None:
    done = stepscope(tmp_path, "run", "sh", "-c", "echo $PPID; exit 9", env={"STEPSCOPE": "0"})
    assert (done.code, done.stderr) == (9, "")
    assert int(done.stdout) == os.getpid()
    assert not (tmp_path / "stepscope-runs").exists()
    assert stepscope(tmp_path, "run", "no-such", env={"STEPSCOPE": "0"}).code == 127


def test_a_script_of_python_is_run_with_python(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys; print(sys.argv[1:], sys.executable)")
    done = stepscope(tmp_path, "run", "--name", "n", "train.py", "--lr", "0.1")
    assert done.stdout.startswith("['--lr', '0.1']")
    assert summary_in(only_run(tmp_path))["run"]["command"][-3:] == ["train.py", "--lr", "0.1"]
    bins = tmp_path / "bin"
    bins.mkdir()
    assert stepscope(tmp_path, "run", "train.py", env={"PATH": str(bins)}).code == 127
    script(bins, 'echo "third $1"', "python3")
    env = {"PATH": f"{bins}:/nowhere"}
    assert stepscope(tmp_path, "run", "--quiet", "train.py", env=env).stdout == "third train.py\n"


def test_names(tmp_path: Path) -> None:
    for _ in range(3):
        assert stepscope(tmp_path, "run", "--name", "my run", "true").code == 0
    runs = tmp_path / "stepscope-runs"
    assert {path.name for path in runs.iterdir()} == {"my run", "my run-2", "my run-3"}
    assert summary_in(runs / "my run-2")["run"]["name"] == "my run-2"
    for bad in ("", "a/b", "..", "a\nb", "x" * 300):
        done = stepscope(tmp_path, "run", "--name", bad, "true") if bad else None
        assert done is None or (done.code == 2 and "hint:" in done.stderr)
    assert {path.name for path in runs.iterdir()} == {"my run", "my run-2", "my run-3"}


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        (["sh", "-c", "true", "x/train.py"], "train"),
        (["env", "-u", "X", "true"], "env"),
        (
            ["sh", "-c", "true", "torchrun", "--nproc-per-node", "2", "pre/fine-tune.py"],
            "fine-tune",
        ),
        (["sh", "-c", "true", "python", "-m", "pkg.train"], "train"),
        (["sh", "-c", "true", "python", "-m", "torch.distributed.run", "a.py"], "a"),
    ],
)
def test_default_name_is_script_and_time(tmp_path: Path, command: list[str], stem: str) -> None:
    assert stepscope(tmp_path, "run", *command).code == 0
    name = only_run(tmp_path).name
    assert name[: -len("-20261129-181827")] == stem
    time.strptime(name[len(stem) + 1 :], "%Y%m%d-%H%M%S")


def test_run_dir_and_overwrite(tmp_path: Path) -> None:
    there = tmp_path / "deep/er"
    other = there / "notes.txt"
    assert stepscope(tmp_path, "run", "--run-dir", str(there), "true").code == 0
    other.write_text("mine")
    marker = tmp_path / "ran"
    refused = stepscope(tmp_path, "run", "--run-dir", str(there), "touch", str(marker))
    assert refused.code == 2
    assert "--overwrite" in refused.stderr
    assert not marker.exists()
    again = stepscope(tmp_path, "run", "--run-dir", str(there), "--overwrite", "sh", "-c", "exit 4")
    assert again.code == 4
    assert summary_in(there)["run"]["exit_code"] == 4
    assert other.read_text() == "mine"
    assert stepscope(tmp_path, "run", "--run-dir", str(other), "true").code == 2
    (tmp_path / "empty").mkdir()
    assert stepscope(tmp_path, "run", "--run-dir", "empty", "true").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "--set", "nonsense", "touch", "ran"],
        ["run", "--set", "input_warnin=0.2", "touch", "ran"],
        ["run", "--set", "input_warning=lots", "touch", "ran"],
        ["run", "--fail-on", "info", "touch", "ran"],
        ["run", "--no-such-flag", "touch", "ran"],
        ["rum", "touch", "ran"],
        ["show", "--frobnicate"],
        [],
    ],
)
def test_wrong_use_is_2_with_a_hint_and_runs_nothing(tmp_path: Path, words: list[str]) -> None:
    done = stepscope(tmp_path, *words)
    assert done.code == 2
    assert done.stdout == ""
    assert "hint:" in done.stderr or "Usage:" in done.stderr
    assert "terminate" not in done.stderr
    assert not (tmp_path / "ran").exists()


def test_settings_flags_beat_environment_beats_file(tmp_path: Path) -> None:
    (tmp_path / "stepscope.toml").write_text("warmup_steps = 1\nmin_steady_steps = 31\n")
    env = {"STEPSCOPE_WARMUP_STEPS": "2", "STEPSCOPE_INPUT_WARNING": "0.33"}
    done = stepscope(tmp_path, "run", "--json", "--set", "warmup_steps=3", "true", env=env)
    settings = done.json()["settings"]
    assert settings["warmup_steps"] == 3
    assert settings["input_warning"] == 0.33
    assert settings["min_steady_steps"] == 31
    (tmp_path / "stepscope.toml").write_text("warmup_steps = \n")
    wrong = stepscope(tmp_path, "run", "touch", "ran")
    assert wrong.code == 2
    assert "stepscope.toml:1" in wrong.stderr
    assert not (tmp_path / "ran").exists()


def test_json_is_the_summary_after_the_childs_own_output(tmp_path: Path) -> None:
    done = stepscope(tmp_path, "run", "--json", "--quiet", "echo", "mine")
    first, rest = done.stdout.split("\n", 1)
    assert first == "mine"
    assert json.loads(rest) == summary_in(only_run(tmp_path))
    assert done.stderr == ""


def test_card_says_why_nothing_was_observed(tmp_path: Path) -> None:
    done = stepscope(tmp_path, "run", "python3", "-I", "-c", "pass")
    assert done.code == 0
    assert "-I, -E or -S" in " ".join(done.stderr.split())


def test_fail_on(tmp_path: Path, cpp_loop: str) -> None:
    slow = [cpp_loop, "60", "input=4", "forward=2"]
    fine = stepscope(tmp_path, "run", "--fail-on", "critical", cpp_loop, "60", "forward=4")
    assert fine.code == 0, fine.stderr
    bad = stepscope(tmp_path, "run", "--fail-on", "critical", *slow)
    assert bad.code == 1
    assert "INPUT_BOUND is critical" in bad.stderr
    assert stepscope(tmp_path, "run", "--quiet", "--fail-on", "warning", *slow).code == 1
    assert stepscope(tmp_path, "run", *slow).code == 0
    own = stepscope(
        tmp_path, "run", "--fail-on", "warning", "sh", "-c", f"{' '.join(slow)}; exit 7"
    )
    assert own.code == 7


def test_help_and_version(tmp_path: Path) -> None:
    assert stepscope(tmp_path, "--version").stdout == "stepscope 0.1.0\n"
    for words in (["--help"], ["run", "--help"], ["show", "--help"], ["clean", "-h"]):
        done = stepscope(tmp_path, *words)
        assert done.code == 0
        assert "Usage" in done.stdout
        assert done.stderr == ""
        assert max(map(len, done.stdout.splitlines())) <= 120
    assert "agent" not in stepscope(tmp_path, "--help").stdout


def test_one_version_everywhere() -> None:
    version = '"0.1.0"'
    assert f"version = {version}" in (ROOT / "pyproject.toml").read_text()
    assert f"__version__ = {version}" in (ROOT / "python/stepscope/__init__.py").read_text()
    assert f"kVersion = {version}" in (ROOT / "src/base/version.h").read_text()
    assert "VERSION 0.1.0" in (ROOT / "CMakeLists.txt").read_text()


def test_binary_needs_only_libc(stepscope_bin: str) -> None:
    listed = subprocess.run(
        ["ldd", stepscope_bin], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[0].split("/")[-1].split(".")[0] for line in listed.splitlines()}
    assert names <= {
        "linux-vdso",
        "libm",
        "libc",
        "ld-linux-x86-64",
        "ld-linux-aarch64",
        "libpthread",
    }


def test_unwritable_folder_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "stepscope-runs").write_text("a file in the way")
    places = tmp_path / "tmp"
    places.mkdir()
    done = stepscope(tmp_path, "run", "--json", "echo", "ran", env={"TMPDIR": str(places)})
    assert done.code == 0
    assert "this run's files are in " + str(places) in done.stderr
    summary = json.loads(done.stdout.split("\n", 1)[1])
    assert Path(summary["files"]["summary_json"]).is_file()
    assert stepscope(tmp_path, "show", env={"TMPDIR": str(places)}).code == 0
