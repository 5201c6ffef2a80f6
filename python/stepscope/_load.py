"""A run's data as rows, for notebooks and scripts: what `stepscope show` reads, without computing
anything new.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_JSON_COLUMNS = {"evidence", "not_measured", "advice"}


@dataclass(frozen=True)
class Run:
    """One run. Every list holds one dict a row; names carry their units (`step_time_ns`,
    `cost_ms_per_step`).

    runs: one row, the run itself. ranks: one a rank, with its counts. steps: raw steps, the newest
    2,000 a rank (`input_ns`, `forward_ns`, ... are exclusive and add up to `step_time_ns`;
    `warmup`, `failed`, `profiled` are 0 or 1; the user's phases stand under `user_phases_ns`, a
    dict; what the rank waited for under `syncs`, a list of dicts: `group` and `index` are the same
    on every member of a process group, `members` how many there are, `ready_ns` to `leave_ns` the
    wait on the rank's own clock, `together` whether all of them leave it at once). findings: as in
    summary.json. summary: that file, or None while the run has none.
    """

    folder: Path
    runs: list[Row]
    ranks: list[Row]
    steps: list[Row]
    findings: list[Row]
    summary: dict[str, Any] | None = field(repr=False)


def load(run: str | os.PathLike[str]) -> Run:
    """Read a run: a folder, or the name of one below ./stepscope-runs. A live run gives what is
    stored so far.

    Raises FileNotFoundError when there is no such run, ValueError when its run.db cannot be read
    (the file is left as it is).
    """
    folder = _folder(run)
    database = folder / "run.db"
    try:
        connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        try:
            runs = _rows(connection.execute("SELECT * FROM runs"))
            ranks = _rows(connection.execute("SELECT * FROM ranks ORDER BY rank"))
            steps = _rows(connection.execute("SELECT * FROM steps ORDER BY rank, step"))
            phases = _rows(
                connection.execute("SELECT * FROM step_user_phases ORDER BY step_id, position")
            )
            findings = _rows(connection.execute("SELECT * FROM findings ORDER BY position"))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise ValueError(
            f"could not read {database}: {error}\n"
            f"hint: stepscope show {folder} finishes it, or names what is wrong"
        ) from error
    _attach(steps, phases)
    return Run(folder, runs, ranks, steps, findings, _summary(folder))


def _folder(run: str | os.PathLike[str]) -> Path:
    given = Path(run)
    for folder in (given, Path("stepscope-runs") / given):
        if (folder / "run.db").is_file():
            return folder
    raise FileNotFoundError(
        f"no run at {given}: no run.db in it or below ./stepscope-runs\nhint: stepscope runs"
    )


def _rows(cursor: Iterable[sqlite3.Row]) -> list[Row]:
    return [
        {
            name: json.loads(row[name]) if name in _JSON_COLUMNS and row[name] else row[name]
            for name in row.keys()  # noqa: SIM118
        }
        for row in cursor
    ]


def _attach(steps: list[Row], phases: list[Row]) -> None:
    by_id = {step["id"]: step for step in steps}
    for step in steps:
        step["user_phases_ns"] = {}
        step["syncs"] = _syncs(step.get("syncs") or b"")
    for phase in phases:
        step = by_id.get(phase["step_id"])
        if step is not None:
            step["user_phases_ns"][phase["name"]] = phase["time_ns"]


def _syncs(packed: bytes) -> list[Row]:
    """src/store/sync_blob.h"""
    names = ("group", "index", "members", "ready_ns", "leave_ns", "together")
    point = struct.Struct("<QIIqqQ")
    whole = packed[: len(packed) // point.size * point.size]
    return [dict(zip(names, values, strict=True)) for values in point.iter_unpack(whole)]


def _summary(folder: Path) -> dict[str, Any] | None:
    try:
        return json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
