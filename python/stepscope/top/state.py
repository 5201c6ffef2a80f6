"""What the view knows: the newest replies, when they came, and what the person at the keys chose.

One asyncio task owns it. Times are of the clock that it is given, so that a test can hold it still.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from stepscope.top import reply, text

STALE_S = 3.0
QUIET_S = 5.0  # a live run without a new step for so long, and for 5 of its steps, is said to be
LAYOUTS = ("auto", "full", "compact", "line")


@dataclasses.dataclass(frozen=True)
class Column:
    """Of the ranks table: its head, what the API sorts it by, and when it goes for want of room."""

    name: str
    title: str
    sort: str
    gives_way: int  # the highest goes first
    phase: str = ""
    numeric: bool = True
    sortable: bool = True


COLUMNS = (
    Column("rank", "RANK", "rank", 0),
    Column("host", "HOST", "node", 10, numeric=False),
    Column("step", "STEP", "step", 8),
    Column("total", "TOTAL", "total_ms", 1),
    Column("input", "INPUT", "input", 5, "input"),
    Column("h2d", "H2D", "h2d", 12, "h2d"),
    Column("forward", "FWD", "forward", 4, "forward"),
    Column("backward", "BWD", "backward", 4, "backward"),
    Column("sync", "SYNC", "sync", 3, "sync"),
    Column("optimizer", "OPT", "optimizer", 9, "optimizer"),
    Column("other", "OTHER", "other", 11, "other"),
    Column("late", "LATE", "late_ms", 1),
    Column("memory", "MEM", "memory_bytes", 7),
    Column("trend", "TREND", "", 6, numeric=False, sortable=False),
    Column("doing", "NOW", "", 13, numeric=False, sortable=False),
)
SORTABLE = [column for column in COLUMNS if column.sortable]


@dataclasses.dataclass
class Choice:
    sort: str = "late"
    falling: bool = True
    by_node: bool = False
    filter: str = ""
    paused: bool = False
    follow: bool = False
    layout: str = "auto"
    cursor: int = 0  # a row of all that match
    offset: int = 0  # the first row on the screen
    rank: int | None = None  # whose page is open


@dataclasses.dataclass
class State:
    now: Callable[[], float]
    glyphs: text.Glyphs = text.UNICODE
    place: str = ""
    choice: Choice = dataclasses.field(default_factory=Choice)
    replies: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    started_s: float = 0.0
    replied_s: float | None = None  # when the last summary came
    problem: str = ""  # why the last request got no answer; empty: it did
    hint: str = ""
    paused_s: float = 0.0
    step_seen: tuple[int | None, float] = (None, 0.0)  # the newest step, and when it first came
    rows_shown: int = 10  # that the ranks table has room for
    widths: dict[str, int] = dataclasses.field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.started_s = self.now()

    def take(self, name: str, value: Any) -> None:
        """The reply to a request of poll.py, by its name."""
        self.replies[name] = value
        if name != "summary":
            return
        self.replied_s = self.now()
        self.problem = self.hint = ""
        step = self.step
        if step != self.step_seen[0]:
            self.step_seen = (step, self.now())

    def fail(self, problem: str, hint: str = "") -> None:
        self.problem, self.hint = problem, hint

    # --- what the replies say ---

    @property
    def summary(self) -> Any:
        return self.replies.get("summary")

    @property
    def steps(self) -> int:
        return reply.whole(self.summary, "steps", "count") or 0

    @property
    def step(self) -> int | None:
        """The newest step of the rank that came furthest, else how many there were."""
        now = [step for one in self.now_rows if (step := reply.whole(one, "step")) is not None]
        last = reply.whole(self.replies.get("series"), "last")
        known = [*now, *([last] if last is not None else [])]
        return max(known) if known else (self.steps or None)

    @property
    def now_rows(self) -> list[Any]:
        return [one for one in reply.items(self.summary, "now") if reply.true(one, "alive")]

    @property
    def live(self) -> bool:
        return reply.true(self.summary, "live")

    @property
    def ended(self) -> bool:
        return self.summary is not None and not self.live

    @property
    def rows(self) -> list[Any]:
        return reply.items(self.replies.get("ranks"), "rows")

    @property
    def rows_total(self) -> int:
        return reply.whole(self.replies.get("ranks"), "total") or len(self.rows)

    @property
    def rows_offset(self) -> int:
        return reply.whole(self.replies.get("ranks"), "offset") or 0

    @property
    def row_at_cursor(self) -> Any:
        at = self.choice.cursor - self.rows_offset
        return self.rows[at] if 0 <= at < len(self.rows) else None

    # --- where the view stands ---

    def age_s(self) -> float:
        return self.now() - (self.started_s if self.replied_s is None else self.replied_s)

    def quiet_s(self) -> float | None:
        """For how long a live run has had no new step, when that is long."""
        step, since = self.step_seen
        if not self.live or step is None or self.choice.paused:
            return None
        waits = [s for one in self.now_rows if (s := reply.number(one, "since_s")) is not None]
        quiet = max(self.now() - since, min(waits, default=0.0))
        mean_s = (reply.number(self.summary, "steps", "mean_ms") or 0.0) / 1000
        return quiet if quiet >= max(QUIET_S, 5 * mean_s) else None

    def standing(self) -> tuple[str, str]:
        """(words, style): live, paused, stale, ended, no data yet, connecting."""
        if self.choice.paused:
            return f"paused {text.span(self.now() - self.paused_s)}", "warning"
        if self.summary is None:
            return ("no answer" if self.problem else "connecting"), "warning"
        if self.ended:
            code = reply.whole(self.summary, "run", "exit_code")
            return ("ended" if code is None else f"ended, exit code {code}"), "strong"
        if self.age_s() > STALE_S:
            return f"stale {text.span(self.age_s())}", "warning"
        if self.steps == 0 and self.step is None:
            return "no data yet", "warning"
        quiet = self.quiet_s()
        if quiet is not None:
            return f"live, no step for {text.span(quiet)}", "warning"
        return "live", "strong"

    def health(self) -> str:
        """Stepscope's own; empty when all is well."""
        faults: list[str] = []
        if self.problem and self.summary is not None:
            faults.append(self.problem)
        dropped = reply.whole(self.summary, "stepscope", "records_dropped")
        if dropped:
            faults.append(f"{text.count(dropped)} records dropped")
        if self.live and reply.at(self.replies.get("health"), "storing") is False:
            faults.append("not storing")
        return ", ".join(faults)
