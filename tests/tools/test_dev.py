"""`./dev exec` is its command: folder, output, exit code and signals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

DEV = Path(__file__).parents[2] / "dev"

pytestmark = pytest.mark.fast


def dev(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DEV, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


def test_exec_is_the_command(tmp_path: Path):
    done = dev(
        "exec", "python", "-c", "import os, sys; print(os.getcwd()); sys.exit(3)", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (3, f"{tmp_path}\n")


def test_exec_runs_in_the_environment_of_the_project(tmp_path: Path):
    done = dev("exec", "python", "-c", "import sys; print(sys.prefix)", cwd=tmp_path)
    assert done.stdout == f"{sys.prefix}\n"


def test_exec_passes_arguments_as_they_are(tmp_path: Path):
    words = ["a b", "", "*", "$HOME", "-x"]
    done = dev("exec", "printf", "[%s]", *words, cwd=tmp_path)
    assert done.stdout == "".join(f"[{word}]" for word in words)


def test_signals_reach_the_command_and_its_death_is_seen(tmp_path: Path):
    command = [DEV, "exec", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == -signal.SIGTERM


def test_missing_command(tmp_path: Path):
    assert dev("exec", "no-such-command", cwd=tmp_path).returncode == 127


def test_wrong_use_names_the_word_and_the_way_out(tmp_path: Path):
    done = dev("frobnicate", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "'frobnicate'" in done.stderr
    done = dev("bench", "no-such-benchmark", cwd=tmp_path)
    assert done.returncode == 2
    assert "hint: ./dev bench" in done.stderr
