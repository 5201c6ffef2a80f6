"""What goes from a run into somebody else's metrics: picked and named, nothing computed."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

import stepscope
from stepscope import _ask, _session

PREFIX = "stepscope/"


def now(*, at_end: bool = False) -> dict[str, Any] | None:
    """The summary of this moment, or None while there is none or the agent takes too long: 10 ms.
    It may be a second old; at the end of training it is given a second and has every step.
    """
    within_s = _ask.AT_END_S if at_end else _ask.WITHIN_S
    return _ask.summary(_session.segment_folder(), within_s=within_s, fresh=at_end)


def logging_phase() -> contextlib.AbstractContextManager[object]:
    return stepscope.phase("logging")


def numbers(summary: dict[str, Any]) -> dict[str, float]:
    """step_ms, <phase>_ms for the phases that took time, steps_per_s, samples_per_s: means over the
    steady steps so far. Empty while there is no steady step.
    """
    found: dict[str, float | None] = {"step_ms": summary["steps"]["mean_ms"]}
    for name, phase in summary["phases"].items():
        found[f"{name}_ms"] = phase["mean_ms"] or None
    for name in ("steps_per_s", "samples_per_s"):
        found[name] = summary["throughput"][name]
    return {PREFIX + name: value for name, value in found.items() if value is not None}


def verdict(summary: dict[str, Any]) -> str:
    """One line: the code and its title."""
    return f"{summary['verdict']['code']}: {summary['verdict']['title']}"


def loaded(run: stepscope.Run | str | os.PathLike[str]) -> stepscope.Run:
    return run if isinstance(run, stepscope.Run) else stepscope.load(run)


def card(run: stepscope.Run) -> str:
    try:
        return (run.folder / "summary.txt").read_text(encoding="utf-8")
    except OSError:
        return ""


def series(run: stepscope.Run) -> Iterator[tuple[int, dict[str, float]]]:
    """(step, values) of the lowest rank's raw steps, the newest 2,000: step_ms and <phase>_ms of
    each. Steps that failed are left out.
    """
    rank = min((row["rank"] for row in run.steps), default=0)
    summary = run.summary or {"phases": {}}
    names = [name for name, phase in summary["phases"].items() if not phase.get("user")]
    for row in run.steps:
        if row["rank"] != rank or row["failed"]:
            continue
        values = {name: row[f"{name}_ns"] for name in names} | row["user_phases_ns"]
        values["step"] = row["step_time_ns"]
        yield row["step"], {f"{PREFIX}series/{name}_ms": ns / 1e6 for name, ns in values.items()}


_warned: set[str] = set()


def warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        logging.getLogger("stepscope").warning("stepscope: %s", text)
