"""What an API answers of made-up runs: the shapes of docs/reference/api.md, round numbers."""

from __future__ import annotations

import math
import urllib.parse
from collections.abc import Callable
from typing import Any

from observing import PHASES
from stepscope.top.client import Place, Refused

MB = 2**20
Json = dict[str, Any]

SHAPE = {"input": 12.0, "forward": 30.0, "backward": 41.0, "sync": 10.0, "optimizer": 5.0}
SHAPE |= {"other": 2.0}


def finding(code: str, title: str, **more: Any) -> Json:
    return {
        "code": code,
        "severity": "info",
        "confidence": "certain",
        "title": title,
        "rank": None,
        "phase": "",
        "share": None,
        "evidence": [],
        "not_measured": [],
        "advice": [],
    } | more


STRAGGLER = finding(
    "STRAGGLER",
    "rank 2 holds the others up by 9.9 ms a step since step 200: input",
    severity="critical",
    rank=2,
    phase="input",
    first_step=200,
    last_step=1233,
    evidence=[
        {"name": "excess_ms", "value": 9.94, "unit": "ms"},
        {"name": "episode_rank_seconds", "value": 30.7, "unit": "s"},
        {"name": "slowdown", "value": 1.1, "unit": ""},
    ],
    not_measured=["why its input is slow"],
    advice=[
        {
            "text": "Make input as quick on rank 2 as elsewhere: compare its workers, its files and"
            " its storage with another rank's.",
            "gain": 0.099,
            "verify": "Run again: LATE of rank 2 falls to that of the others.",
            "will_not_help_if": "its samples are larger.",
        }
    ],
)
JITTER = finding(
    "JITTER",
    "5.8 % of the time ranks wait for each other: that many ranks with this much noise cost that",
    severity="warning",
    confidence="possible",
)


def phase(name: str, ms: float | None) -> Json:
    known = ms is not None
    return {
        "measured": known,
        "applicable": known,
        "mean_ms": ms,
        "share": ms / 100 if known else None,
        "clock": "host",
        "user": name not in PHASES,
        "note": None,
    }


def phases(shape: Json = SHAPE) -> Json:
    found = {name: phase(name, shape.get(name, 0.0)) for name in PHASES}
    found["h2d"] = phase("h2d", None)
    return found | {name: phase(name, ms) for name, ms in shape.items() if name not in PHASES}


def reading(unit: str, average: float | None, peak: float | None = None, limit: Any = None) -> Json:
    note = None if average is not None else "this version does not read devices"
    return {
        "measured": average is not None,
        "unit": unit,
        "average": average,
        "peak": peak,
        "limit": limit,
        "note": note,
    }


def summary(ranks: int = 4, **more: Any) -> Json:
    return {
        "schema": 1,
        "live": True,
        "run": {
            "name": "train-20261129-181827",
            "exit_code": None,
            "state": "live",
            "duration_s": 125.4,
            "ranks": ranks,
            "nodes": 2,
        },
        "verdict": STRAGGLER,
        "findings": [STRAGGLER, JITTER],
        "steps": {"count": 1234, "warmup": 10, "mean_ms": 100.0},
        "phases": phases(),
        "throughput": {"samples_per_s": 1280.0, "steps_per_s": 10.0},
        "now": [
            {"rank": r, "phase": "sync", "step": 1234, "since_s": 0.004, "alive": True}
            for r in range(ranks)
        ],
        "resources": {
            "cpu": reading("cores", 3.2, 4.0, 8),
            "memory": reading("bytes", 1500 * MB, 1600 * MB, 24 * 1024 * MB),
            "gpus": reading("share", None),
        },
        "stepscope": {"records_dropped": 0},
        "unobserved": [],
        "notices": [],
    } | more


def ended(**more: Any) -> Json:
    over = summary(live=False, now=[], **more)
    return over | {"run": over["run"] | {"state": "ended", "exit_code": 0}}


def no_steps() -> Json:
    nothing = finding(
        "INSUFFICIENT_DATA",
        "no training step was seen",
        advice=[{"text": "Run stepscope doctor: it says what works here.", "gain": None}],
    )
    return summary(
        verdict=nothing,
        findings=[nothing],
        steps={"count": 0, "mean_ms": None},
        phases=phases({name: None for name in PHASES}),
        throughput={"samples_per_s": None, "steps_per_s": None},
        now=[],
        unobserved=["Python 3.12 (/opt/tool/python3.12): stepscope is not installed for it"],
    )


def row(rank: int, ranks: int) -> Json:
    slow = 10.0 if rank == 2 else 0.0
    shape = SHAPE | {"input": 2.0 + slow, "sync": 20.0 - slow}
    return {
        "rank": rank,
        "node": f"node{rank * 2 // ranks}",
        "ranks": 1,
        "state": "live",
        "step": 1234,
        "total_ms": 100.0,
        "own_ms": 80.0 + slow,
        "late_ms": slow if rank else None,
        "phases": {name: shape.get(name, 0.0) for name in PHASES} | {"h2d": None},
        "memory_bytes": (400 + rank) * MB,
        "cpu_cores": 0.8,
        "trend": [90.0 if i < 12 else 100.0 for i in range(24)],
        "doing": {"phase": "input" if slow else "sync", "since_s": 0.004},
    }


def table(query: dict[str, str], ranks: int = 4) -> Json:
    rows = [row(rank, ranks) for rank in range(ranks)]
    if query.get("filter"):
        rows = [r for r in rows if query["filter"] in (str(r["rank"]), r["node"])]
    sort = query.get("sort", "late_ms")
    value: Callable[[Json], Any] = lambda r: r["phases"].get(sort, r.get(sort))  # noqa: E731
    rows.sort(key=lambda r: (value(r) is not None, value(r)), reverse=query.get("order") != "asc")
    at, limit = int(query.get("offset", 0)), int(query.get("limit", 100))
    return {
        "by": "rank",
        "total": len(rows),
        "of": ranks,
        "window_steps": 100,
        "rows": rows[at : at + limit],
    }


def series(query: dict[str, str]) -> Json:
    points = min(int(query["points"]), 617)
    firsts = [i * 1234 // points for i in range(points)]
    total = [
        90.0 + 5 * math.sin(i / 9) + (10.0 if at >= 200 else 0.0) for i, at in enumerate(firsts)
    ]
    total[0] = 180.0
    return {
        "rank": int(query["rank"]) if "rank" in query else None,
        "first": 0,
        "last": 1234,
        "warmup_until": 10,
        "first_step": firsts,
        "total_ms": total,
        "total_max_ms": [ms * 1.2 for ms in total],
        "phases": [
            {"name": name, "user": False, "ms": [ms * total[i] / 100 for i in range(points)]}
            for name, ms in SHAPE.items()
        ],
    }


def resources(query: dict[str, str]) -> Json:
    points = int(query["points"])
    cores = [3.2 + 0.6 * math.sin(i / 7) for i in range(points)]
    memory = [1400 * MB + 2 * MB * i for i in range(points)]
    return {
        "series": [
            {"name": "cpu_cores", "unit": "cores", "rank": None, "node": "", "values": cores},
            {"name": "memory_bytes", "unit": "bytes", "rank": None, "node": "", "values": memory},
        ],
        "nodes": [],
    }


def events() -> Json:
    def event(kind: str, step: int, text: str, **more: Any) -> Json:
        known = {"rank": 0, "last_step": None, "duration_ms": None, "severity": None, "code": None}
        return {"kind": kind, "step": step, "text": text, "open": None} | known | more

    return {
        "events": [
            event("epoch_start", 0, "epoch start 48.0 ms (4 ranks)", duration_ms=48.0),
            event("finding", 200, STRAGGLER["title"], severity="critical", code="STRAGGLER",
                  rank=2, last_step=1233, open=True),
            event("checkpoint", 500, "checkpoint 312 ms", duration_ms=312.0),
            event("validation", 700, "validation 2.10 s", duration_ms=2100.0, last_step=702),
            event("checkpoint", 1000, "checkpoint 305 ms", duration_ms=305.0),
        ]
    }  # fmt: skip


class FakeApi:
    """Answers as told. `down`: an error that every request raises instead."""

    def __init__(self, of: Json | None = None, ranks: int = 4) -> None:
        self.place = Place(socket="/run/api.sock", base="/v1")
        self.summary, self.ranks = of or summary(ranks), ranks
        self.down: Exception | None = None
        self.asked: list[str] = []

    async def get(self, path: str, timeout_s: float = 5.0) -> Any:
        self.asked.append(path)
        if self.down is not None:
            raise self.down
        name, _, words = path.partition("?")
        query = dict(urllib.parse.parse_qsl(words))
        if name == "/summary":
            return self.summary
        if self.summary["steps"]["count"] == 0 and name != "/health":
            return {"rows": [], "events": [], "series": [], "total": 0}
        answers: dict[str, Callable[[], Json]] = {
            "/ranks": lambda: table(query, self.ranks),
            "/series": lambda: series(query),
            "/resources": lambda: resources(query),
            "/events": events,
            "/health": lambda: {"storing": True},
        }
        if name not in answers:
            raise Refused(404, f"nothing at {name}")
        return answers[name]()
