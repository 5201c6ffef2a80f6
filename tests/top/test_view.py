"""The terminal view on a screen of textual's own, over made-up replies and a clock that stands.

Screens are compared with tests/top/snapshots/NAME.txt, as text: what a reviewer reads is what the
terminal shows. STEPSCOPE_UPDATE=1 writes them anew.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from stepscope.top import keys, layout, panels, text
from stepscope.top.app import STYLES, TopApp
from stepscope.top.client import Refused
from top import replies

pytestmark = pytest.mark.fast
SNAPSHOTS = Path(__file__).parent / "snapshots"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclasses.dataclass
class Seen:
    """A screen: its lines, and which pieces are drawn in which style."""

    lines: list[str]
    pieces: list[tuple[str, Any]]

    def __contains__(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def style(self, words: str) -> Any:
        return next(style for piece, style in self.pieces if words in piece)


class View:
    """A running view. turn(): one round of requests, and what it brought is drawn."""

    def __init__(self, app: TopApp, pilot: Any, api: replies.FakeApi, clock: Clock) -> None:
        self.app, self.pilot, self.api, self.clock = app, pilot, api, clock

    async def turn(self, seconds: float = 0.0) -> None:
        self.clock.now_s += seconds
        self.app.poller.hurry("health")  # wakes the poller: what is due now is asked for
        await self.settle()

    async def settle(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        self.app.changed()
        await self.pilot.pause()

    async def press(self, *names: str) -> None:
        await self.pilot.press(*names)
        await self.settle()

    def see(self) -> Seen:
        strips = self.app.screen._compositor.render_strips()
        lines = ["".join(segment.text for segment in strip) for strip in strips]
        pieces = [(segment.text, segment.style) for strip in strips for segment in strip]
        return Seen([line.rstrip() for line in lines], pieces)


Body = Callable[[View], Awaitable[None]]


def look(
    body: Body,
    width: int = 80,
    height: int = 24,
    *,
    of: replies.Json | None = None,
    ranks: int = 4,
    glyphs: text.Glyphs = text.UNICODE,
    down: Exception | None = None,
) -> None:
    async def run() -> None:
        api, clock = replies.FakeApi(of, ranks), Clock()
        api.down = down
        app = TopApp(api, glyphs=glyphs, clock=clock)  # type: ignore[arg-type]
        async with app.run_test(size=(width, height)) as pilot:
            view = View(app, pilot, api, clock)
            await view.turn()
            await body(view)

    asyncio.run(run())


def compare(name: str, seen: Seen) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    screen = "\n".join(seen.lines) + "\n"
    if os.environ.get("STEPSCOPE_UPDATE"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(screen)
    assert screen == path.read_text(), "hint: STEPSCOPE_UPDATE=1 ./dev test tests/top/test_view.py"


@pytest.mark.parametrize(
    ("name", "width", "height"),
    [
        ("narrow", 40, 20),
        ("compact", 80, 24),
        ("low", 80, 12),
        ("one_line", 80, 4),
        ("full", 160, 45),
    ],
)
def test_layouts(name: str, width: int, height: int) -> None:
    async def body(view: View) -> None:
        seen = view.see()
        assert all(len(line) <= width for line in seen.lines)
        assert len(seen.lines) == height
        compare(name, seen)

    look(body, width, height)


def test_ascii() -> None:
    async def body(view: View) -> None:
        seen = view.see()
        assert "".join(seen.lines).isascii()
        compare("full_ascii", seen)

    look(body, 160, 45, glyphs=text.ASCII)


@pytest.mark.parametrize(
    ("name", "key"),
    [("help", "question_mark"), ("rank", "enter"), ("findings", "v")],
)
def test_pages(name: str, key: str) -> None:
    async def body(view: View) -> None:
        await view.press(key)
        await view.turn()
        compare(name, view.see())
        await view.press("escape")
        assert "STRAGGLER  rank 2 holds" in view.see()

    look(body, 80, 40)


def test_a_run_without_a_step_says_why_and_what_to_do() -> None:
    async def body(view: View) -> None:
        compare("no_data", view.see())

    look(body, of=replies.no_steps())


def test_an_ended_run_is_asked_for_once() -> None:
    async def body(view: View) -> None:
        compare("ended", view.see())
        asked = len(view.api.asked)
        await view.turn(60)
        assert [path for path in view.api.asked[asked:] if not path.startswith("/health")] == []
        assert "stale" not in view.see()

    look(body, of=replies.ended())


def test_thousands_of_ranks_are_fetched_a_window_at_a_time() -> None:
    async def body(view: View) -> None:
        rows = view.app.state.rows_shown
        assert 3 <= len(view.app.state.rows) == rows < 24
        await view.press("end")
        await view.turn()
        assert f"{4096 - rows + 1}-4096 of 4,096" in view.see()
        assert f"offset={4096 - rows}&limit={rows}" in view.api.asked[-1] + view.api.asked[-2]

    look(body, ranks=4096)


@pytest.mark.parametrize("width", [80, 110, 160, 300])
def test_a_curve_asks_for_as_many_points_as_it_draws(width: int) -> None:
    """Else its beginning would be cut off, and marks would stand beside what they mark."""

    async def body(view: View) -> None:
        points = {
            path.partition("?")[0]: int(path.partition("points=")[2].partition("&")[0])
            for path in view.api.asked
            if "points=" in path
        }
        drawn = 2 * layout.drawn_columns("series", width)
        assert points["/series"] == min(drawn, 2000)
        lines = panels.chart(view.app.state, width, 9)
        curve = ["".join(words for words, _ in line) for line in lines[1:-1]]
        assert all(len(line) <= width for line in curve)
        first_jump = next(line.index("⢱") for line in curve if "⢱" in line)
        assert first_jump == panels.AXIS  # the warm-up step, step 0

    look(body, width, 45)


def test_an_agent_that_goes_and_comes_back() -> None:
    async def body(view: View) -> None:
        assert view.see().lines[5].startswith("live")
        view.api.down = Refused(503, "the agent of this run is gone; the training goes on")
        await view.turn(12)
        seen = view.see()
        assert "stale 12 s" in seen
        assert "! the agent of this run is gone" in seen
        assert "STRAGGLER" in seen  # what was known stays
        view.api.down = None
        await view.turn(2)
        seen = view.see()
        assert "stale" not in seen
        assert "!" not in "".join(seen.lines)

    look(body, 100)


def test_nobody_answers_from_the_start() -> None:
    async def body(view: View) -> None:
        assert view.see().lines[0] == "NO ANSWER  the agent is gone"
        view.api.down = None
        await view.turn(1)
        assert "STRAGGLER" in view.see()

    look(body, down=FileNotFoundError(2, "no such file"))


def test_a_hang_is_told_from_a_stale_view() -> None:
    async def body(view: View) -> None:
        for _ in range(8):
            await view.turn(1)
        seen = view.see()
        assert "live, no step for 8 s" in seen

    look(body)


def test_pause_holds_the_screen_and_goes_on() -> None:
    async def body(view: View) -> None:
        await view.press("p")
        view.api.summary = replies.ended()
        await view.turn(7)
        assert "paused 7 s" in view.see()
        await view.press("p")
        await view.turn(1)
        assert "ended, exit code 0" in view.see()

    look(body)


def test_stepscopes_own_health_is_silent_when_fine() -> None:
    async def body(view: View) -> None:
        assert "! 17 records dropped" in view.see()

    look(body, 100, of=replies.summary(stepscope={"records_dropped": 17}))


def test_sort_filter_reverse_nodes() -> None:
    async def body(view: View) -> None:
        def asked() -> str:
            return next(path for path in reversed(view.api.asked) if path.startswith("/ranks"))

        await view.press("S")
        assert "sort=other" in asked()
        assert "OTHER▾" in view.see()
        await view.press("o")
        assert "order=asc" in asked()
        assert "OTHER▴" in view.see()
        await view.press("n")
        assert "by=node" in asked()
        await view.press("n", "slash", *"node1", "enter")
        assert "filter=node1" in asked()
        seen = view.see()
        assert "filter 'node1'" in seen
        assert not any("node0" in line for line in seen.lines)
        await view.press("escape")
        assert "filter=" not in asked()
        await view.press("slash", *"q", "escape")  # typed, not obeyed
        assert view.app.is_running
        await view.press("f")
        assert "sort=late_ms&order=desc" in asked()
        assert "following the slowest" in view.see()

    look(body, 100)


def test_the_detail_follows_the_slowest() -> None:
    async def body(view: View) -> None:
        await view.press("f", "enter")
        await view.turn()
        assert view.see().lines[0].startswith("RANK 2  node1  following the slowest")
        assert "rank=2" in " ".join(view.api.asked)

    look(body)


def test_keys_of_the_one_table_all_do_something() -> None:
    for key in keys.KEYS:
        name = key.action.partition("(")[0]
        assert hasattr(TopApp, f"action_{name}"), key
        assert key.where in ("main", "page", "both")
    bound = [name for key in keys.KEYS for name in key.keys.split(",")]
    assert len(bound) == len(set(bound))
    assert {key.word for key in keys.KEYS if key.word} >= {
        "quit",
        "help",
        "sort",
        "filter",
        "pause",
    }


def test_colour_is_severity_and_a_word_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async def coloured(view: View) -> None:
        seen = view.see()
        assert seen.style("STRAGGLER").color.name == "red"
        assert "critical" in seen
        plain = {style.color for piece, style in seen.pieces if style and "STRAGGLER" not in piece}
        assert seen.style("node1").color in (None, *plain)

    look(coloured)
    monkeypatch.setenv("NO_COLOR", "1")

    async def colourless(view: View) -> None:
        colours = {style.color and style.color.name for _, style in view.see().pieces if style}
        assert not colours & {"red", "yellow"}

    look(colourless)
    coloured_styles = [name for name, style in STYLES.items() if style.color is not None]
    assert coloured_styles == ["critical", "warning"]


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\r\nx\u200b[bold]"


def test_hostile_names_never_drive_the_terminal() -> None:
    of = replies.summary()
    of["run"]["name"] = HOSTILE
    of["verdict"] = replies.finding(HOSTILE, HOSTILE, severity="critical")
    of["findings"] = [of["verdict"]]
    of["phases"] = replies.phases(replies.SHAPE | {HOSTILE: 3.0})
    of["unobserved"] = of["notices"] = [HOSTILE]

    async def body(view: View) -> None:
        view.app.state.choice.filter = HOSTILE
        for key in ("enter", "escape", "v", "escape", "question_mark", "escape", "l", "l", "l"):
            await view.press(key)
            for line in view.see().lines:
                assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b\u202e]", line), repr(line)
        assert "[bold]" in view.see()  # neither is it markup

    look(body, 160, 45, of=of)


JUNK: list[Any] = [None, [], {}, "x", 7, {"rows": 3}, {"steps": [], "verdict": "x", "phases": 1}]


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_a_server_that_answers_nonsense_is_survived(junk: Any) -> None:
    async def body(view: View) -> None:
        async def get(_path: str, timeout_s: float = 5.0) -> Any:
            return junk

        view.api.get = get  # type: ignore[method-assign]
        await view.turn(30)
        await view.press("enter", "escape", "v", "escape")
        assert view.app.is_running

    look(body, 160, 45)
