"""Runs the scripts of tests/scripts, and compares what stepscope says with what they measured.

The scripts measure themselves (scripts/common.py). No figure here is compared with a constant of
the wall clock.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"
ROOT = Path(__file__).parent.parent
STEPSCOPE = os.environ.get("STEPSCOPE_BIN") or str(Path(sys.prefix) / "bin" / "stepscope")
PHASES = (
    "input",
    "h2d",
    "forward",
    "backward",
    "sync",
    "optimizer",
    "checkpoint",
    "validation",
    "compile",
    "gc",
    "profiler",
    "other",
)
OF_STEP = 0.05  # a phase may differ by so much of the step from what the script measured
SUM_OF_STEP = 0.01  # the phases add up to the step within this


@dataclasses.dataclass
class Ran:
    """A finished process: its exit code (negative: signal), what it printed, and what it left."""

    code: int
    stdout: str
    stderr: str
    folder: Path
    measured: dict[str, Any] | None
    run: Path

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        assert (self.run / "summary.json").exists(), self.stderr
        return json.loads((self.run / "summary.json").read_text())

    @functools.cached_property
    def rows(self) -> Any:
        import stepscope

        return stepscope.load(self.run)

    def steps(self, rank: int = 0) -> list[dict[str, Any]]:
        return [row for row in self.rows.steps if row["rank"] == rank]

    def finished(self) -> Ran:
        assert self.code == 0, (
            f"exit code {self.code}\n{self.stdout[-2000:]}\n{self.stderr[-6000:]}"
        )
        return self


def environment(folder: Path, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    # COLUMNS, LINES: pytest's workers have them, a user's commands do not.
    hidden = ("PYTHONPATH", "COLUMNS", "LINES")
    env = {k: v for k, v in os.environ.items() if not k.startswith("STEPSCOPE") and k not in hidden}
    env |= {"OMP_NUM_THREADS": "1", "MEASURED": str(folder / "measured.json")}
    for name, value in (changes or {}).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def script(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(SCRIPTS / name), *map(str, arguments)]


def torchrun(ranks: int, name: str, *arguments: object) -> list[str]:
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(ranks),
        str(SCRIPTS / name),
        *map(str, arguments),
    ]


def execute(
    folder: Path,
    command: Sequence[str],
    *,
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
) -> Ran:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    measured = folder / "measured.json"
    return Ran(
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
        folder,
        json.loads(measured.read_text()) if measured.exists() else None,
        folder / "run",
    )


def observe(
    folder: Path,
    command: Sequence[str],
    *,
    flags: Sequence[str] = (),
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
) -> Ran:
    """`stepscope run --run-dir FOLDER/run COMMAND`, in a folder of its own."""
    whole = [STEPSCOPE, "run", "--run-dir", str(folder / "run"), *flags, "--", *command]
    return execute(folder, whole, env=env, timeout=timeout)


def together(calls: Mapping[str, Callable[[], Ran]], at_once: int = 2) -> dict[str, Ran]:
    """Each is a process of its own that mostly sleeps or loads torch: two at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        waiting = {name: pool.submit(call) for name, call in calls.items()}
        return {name: result.result() for name, result in waiting.items()}


def total_of(step: Mapping[str, Any]) -> int:
    return step["end"] - step["begin"]


def complete(step: Mapping[str, Any], names: Iterable[str] = ()) -> dict[str, float]:
    """All twelve phases of what a script measured: what it gave no name is `other`."""
    phases = {name: step["phases"].get(name, 0) for name in (*PHASES, *names, *step["phases"])}
    phases["other"] = total_of(step) - sum(
        ns for name, ns in step["phases"].items() if name != "other"
    )
    return phases


def compare(ours: Mapping[str, float], theirs: Mapping[str, float], step: float) -> None:
    """Both in the same unit; every phase within 5 % of the step, and theirs in no other."""
    table = "\n".join(
        f"  {name:12} ours {ours.get(name, 0):12.3f}  script {theirs.get(name, 0):12.3f}"
        for name in dict.fromkeys([*ours, *theirs])
    )
    wrong = [
        name
        for name in {*ours, *theirs}
        if abs(ours.get(name, 0) - theirs.get(name, 0)) > OF_STEP * step
    ]
    assert not wrong, f"{sorted(wrong)} differ by more than 5 % of the step of {step:.3f}:\n{table}"


def compare_steps(
    rows: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    phases: Iterable[str] = PHASES,
) -> None:
    """Rows of run.db against the script's own steps, one to one.

    Of each phase the worst step is left out: a machine at work takes the CPU away for milliseconds,
    and when that falls between two readings of the clock, one of them has it and the other not.
    """
    assert len(rows) == len(steps) >= 2
    whole = [complete(step) for step in steps]
    step_ms = median(map(total_of, steps)) / 1e6
    ours, theirs = {}, {}
    for phase in phases:
        pairs = [
            (phases_of_row(row).get(phase, 0) / 1e6, step.get(phase, 0) / 1e6)
            for row, step in zip(rows, whole, strict=True)
        ]
        pairs.remove(max(pairs, key=lambda pair: abs(pair[0] - pair[1])))
        ours[phase] = sum(our for our, _ in pairs) / len(pairs)
        theirs[phase] = sum(their for _, their in pairs) / len(pairs)
    compare(ours, theirs, step_ms)


def phases_of_row(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: row[f"{name}_ns"] for name in PHASES} | row["user_phases_ns"]


def check_summary(summary: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
    """The whole of a single-rank summary against the script's own steps."""
    assert summary["steps"]["count"] == len(steps)
    assert summary["steps"]["failed"] == 0
    steady = steps[summary["steps"]["warmup"] :]
    count = len(steady)
    mean_ms = sum(map(total_of, steady)) / count / 1e6
    assert abs(summary["steps"]["mean_ms"] - mean_ms) <= OF_STEP * mean_ms
    theirs: dict[str, float] = {}
    for step in steady:
        for name, ns in complete(step).items():
            theirs[name] = theirs.get(name, 0) + ns / count / 1e6
    check_phases_add_up(summary)
    ours = {name: phase["mean_ms"] or 0.0 for name, phase in summary["phases"].items()}
    compare(ours, theirs, mean_ms)


def check_phases_add_up(summary: Mapping[str, Any]) -> None:
    assert set(PHASES) <= set(summary["phases"])
    mean_ms = summary["steps"]["mean_ms"]
    phases = summary["phases"].values()
    assert (
        abs(sum(p["mean_ms"] for p in phases if p["measured"]) - mean_ms) <= SUM_OF_STEP * mean_ms
    )
    assert abs(sum(p["share"] for p in phases if p["measured"]) - 1) <= SUM_OF_STEP
    for name, phase in summary["phases"].items():
        if not phase["measured"]:
            assert phase["mean_ms"] is None, name
            assert phase["share"] is None, name


def match(rows: Sequence[Mapping[str, Any]], anchors: Sequence[int]) -> list[Mapping[str, Any]]:
    """The row that each anchor lies in; every anchor in one of its own."""
    found = []
    for anchor in anchors:
        inside = [row for row in rows if row["begin_ns"] <= anchor < row["end_ns"]]
        assert len(inside) == 1, f"{len(inside)} steps hold the instant {anchor}"
        found.append(inside[0])
    numbers = [row["step"] for row in found]
    assert len(set(numbers)) == len(numbers), f"steps taken for one: {numbers}"
    return found


_steps_run: list[Ran] = []


def steps_run(folder: Path) -> Ran:
    """scripts/steps.py, all loops in one observed process; run once a session."""
    if not _steps_run:
        _steps_run.append(observe(folder, script("steps.py")))
    return _steps_run[0].finished()


def loop_of(ran: Ran, name: str) -> tuple[list[dict[str, Any]], list[int]]:
    """What one loop of scripts/steps.py measured: its steps, and an instant in each step that
    failed.
    """
    assert ran.measured is not None
    found = ran.measured["loops"][name]
    return found["steps"], found["failed"]
