"""kill -9 of the training process, the agent, the supervisor, or all of them, at random instants.

Every file stays readable, and every step that the loop had finished (it says so on stdout, after
the step is over) is in the summary after the next command. The seed is printed; STEPSCOPE_TEST_SEED
repeats it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from observing import STEPSCOPE, environment, script

PATIENCE_S = 60.0
STEPS = 2000  # far more than any round lets happen
WHO = ("training", "agent", "supervisor", "all", "agent, then training", "supervisor, then all")


def seed() -> int:
    value = int(os.environ.get("STEPSCOPE_TEST_SEED", time.time_ns() % 1_000_000))
    print(f"STEPSCOPE_TEST_SEED={value}")
    return value


def children(parent: int) -> dict[int, str]:
    """pid -> command line of the direct children."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace")
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Observed:
    """A run of a loop that prints `step N` after each step, and the pids of its processes."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder = folder
        self.printed = folder / "steps.txt"
        folder.mkdir(parents=True)
        with self.printed.open("wb") as out:
            self.supervisor = subprocess.Popen(
                [STEPSCOPE, "run", "--quiet", "--run-dir", str(folder / "run"), *command],
                cwd=folder,
                env=environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=(folder / "stderr.txt").open("wb"),
                start_new_session=True,
            )
        self.agent = self.training = 0
        self.await_steps(1)
        # The first step may be done before the agent is one.
        deadline = time.monotonic() + PATIENCE_S
        while not self.find_processes():
            assert time.monotonic() < deadline, children(self.supervisor.pid)
            time.sleep(0.005)

    def find_processes(self) -> bool:
        for pid, line in children(self.supervisor.pid).items():
            if line.split("\0")[1:2] == ["agent"]:
                self.agent = pid
            elif line.split("\0")[0] != STEPSCOPE:  # the supervisor's witness of signals
                self.training = pid
        return bool(self.agent and self.training)

    def finished_steps(self) -> int:
        return self.printed.read_bytes().count(b"\n")  # a torn last line is not a finished one

    def await_steps(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.finished_steps() < count:
            assert time.monotonic() < deadline, (self.folder / "stderr.txt").read_text()
            time.sleep(0.005)

    def kill(self, who: str) -> None:
        pids = {"training": [self.training], "agent": [self.agent]}
        pids |= {"supervisor": [self.supervisor.pid]}
        everybody = [self.supervisor.pid, self.agent, self.training]
        for pid in pids.get(who, everybody):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def await_death(self) -> None:
        """The training process is gone; a supervisor that lives has ended."""
        self.supervisor.wait(timeout=PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while is_alive(self.training):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def summary(self) -> dict[str, object]:
        shown = subprocess.run(
            [STEPSCOPE, "show", str(self.folder / "run"), "--json"],
            cwd=self.folder,
            env=environment(self.folder),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)


def check(observed: Observed, explanation: str) -> None:
    seen = observed.finished_steps()
    summary = observed.summary()
    steps, own = summary["steps"], summary["stepscope"]
    assert isinstance(steps, dict) and isinstance(own, dict)
    # The step in progress may have ended without having been printed.
    assert seen <= steps["count"] <= seen + 1, (explanation, seen, steps, own)
    assert own["records_dropped"] == 0
    with contextlib.closing(sqlite3.connect(observed.folder / "run" / "run.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",), explanation
        numbers = [row[0] for row in database.execute("SELECT step FROM steps ORDER BY step")]
    assert len(numbers) == len(set(numbers)), explanation


def one_round(folder: Path, command: list[str], who: str, chance: random.Random) -> None:
    observed = Observed(folder, command)
    try:
        time.sleep(chance.uniform(0, 1.3))  # commits come each second: before, within, after one
        first, _, then = who.partition(", then ")
        observed.kill(first)
        if then:
            time.sleep(chance.uniform(0, 0.4))
            observed.kill(then)
        elif first in ("agent", "supervisor"):
            observed.await_steps(observed.finished_steps() + 5)  # training goes on
            os.kill(observed.training, signal.SIGTERM)
        observed.await_death()
        check(observed, f"{who} in {folder}")
    finally:
        observed.kill("all")


@pytest.mark.parametrize("who", WHO)
def test_cpp_loop(tmp_path: Path, cpp_loop: str, who: str) -> None:
    chance = random.Random(seed())
    command = [cpp_loop, str(STEPS), "input=0.5", "forward=1", "backward=1"]
    for number in range(4):
        one_round(tmp_path / str(number), command, who, chance)


@pytest.mark.parametrize("who", ["training", "all"])
def test_torch(tmp_path: Path, who: str) -> None:
    chance = random.Random(seed())
    one_round(tmp_path / "round", script("endless.py", STEPS), who, chance)


def test_the_check_can_fail(tmp_path: Path) -> None:
    """A step that was printed and never recorded is noticed."""
    command = [sys.executable, "-c", "print('step 0', flush=True); import time; time.sleep(60)"]
    observed = Observed(tmp_path / "round", command)
    observed.kill("all")
    observed.await_death()
    with pytest.raises(AssertionError):
        check(observed, "nothing was recorded")
