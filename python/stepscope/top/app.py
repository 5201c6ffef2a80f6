"""The view on the screen: textual draws the lines of layout.py and pages.py, and brings the keys.

One task polls, the same loop draws; a screen that did not change is not drawn again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from stepscope.top import keys, layout, pages, panels, ranks, reply, text
from stepscope.top.client import Api
from stepscope.top.poll import Poller
from stepscope.top.state import LAYOUTS, SORTABLE, State
from stepscope.top.text import Line

# The terminal's own colours, and colour for severity alone.
STYLES = {
    "": Style(),
    "dim": Style(dim=True),
    "strong": Style(bold=True),
    "title": Style(bold=True),
    "key": Style(bold=True),
    "critical": Style(bold=True, color="red"),
    "warning": Style(bold=True, color="yellow"),
    "cursor": Style(reverse=True),
}

CSS = """
Screen { layers: base; background: ansi_default; color: ansi_default; }
Canvas { width: 100%; height: 1fr; background: ansi_default; color: ansi_default; }
#filter {
    dock: bottom; height: 1; border: none; padding: 0; display: none;
    background: ansi_default; color: ansi_default;
}
#filter.open { display: block; }
"""


class Canvas(Widget, can_focus=True):
    """Draws lines. `draw` is asked again only after changed()."""

    def __init__(self, draw: Callable[[int, int], list[Line]]) -> None:
        super().__init__()
        self._draw = draw
        self._lines: list[Line] = []
        self._drawn = (0, 0)

    def changed(self) -> None:
        """Draws anew the lines that differ."""
        size = (self.size.width, self.size.height)
        lines = self._draw(*size) if size[0] > 0 and size[1] > 0 else []
        if size != self._drawn or len(lines) != len(self._lines):
            self._lines, self._drawn = lines, size
            self.refresh()
            return
        differ = [at for at, line in enumerate(lines) if line != self._lines[at]]
        self._lines = lines
        for at in differ:
            self.refresh_line(at)

    def refresh_line(self, at: int) -> None:
        self.refresh(Region(0, at, self.size.width, 1))

    def on_resize(self, _event: events.Resize) -> None:
        self.changed()

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else []
        segments = [Segment(words, STYLES.get(style, STYLES[""])) for words, style in line if words]
        return Strip(segments).adjust_cell_length(self.size.width)


class Page(Screen[None]):
    """Help, a rank, the findings: lines that scroll, over the view."""

    def __init__(self, state: State, draw: Callable[[int, int], list[Line]]) -> None:
        super().__init__()
        self._state, self._make = state, draw
        self.offset_line = 0
        self.canvas = Canvas(self._draw)

    def compose(self) -> ComposeResult:
        yield self.canvas

    def scroll_lines(self, by: int) -> None:
        self.offset_line += by
        self.canvas.changed()

    def _draw(self, width: int, height: int) -> list[Line]:
        lines = self._make(width, height - 2)
        room = max(1, height - 2)
        self.offset_line = max(0, min(self.offset_line, len(lines) - room))
        shown = lines[self.offset_line : self.offset_line + room]
        shown = [text.spread(line, [], width, self._state.glyphs) for line in shown]
        shown += [[] for _ in range(room - len(shown))]
        below = len(lines) - self.offset_line - room
        more: Line = [(f"{below} more lines: Down" if below > 0 else "", "dim")]
        return [*shown, more, panels.key_line(self._state, width, "page")]


class TopApp(App[None]):
    """`stepscope top`. A test gives an `api` and a `clock` of its own."""

    CSS = CSS
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.word, show=False) for key in keys.KEYS
    ]

    def __init__(
        self,
        api: Api,
        *,
        glyphs: text.Glyphs = text.UNICODE,
        chosen_layout: str = "auto",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(ansi_color=True)
        self.state = State(now=clock, glyphs=glyphs, place=str(api.place))
        self.state.choice.layout = chosen_layout
        self.poller = Poller(api, self.state, self.changed)
        self.canvas = Canvas(self._draw)
        self._screen_lines = layout.Screen([])

    def compose(self) -> ComposeResult:
        yield self.canvas
        yield Input(placeholder="rank or host; Enter keeps it, Esc shows all", id="filter")

    def on_mount(self) -> None:
        self.theme = "ansi-dark"  # of which only the terminal's own colours are used
        self.canvas.focus()
        self.run_worker(self.poller.run(), exclusive=True, group="poll")

    # --- drawing ---

    def changed(self) -> None:
        self._follow()
        if isinstance(self.screen, Page):
            self.screen.canvas.changed()
        else:
            self.canvas.changed()

    def _draw(self, width: int, height: int) -> list[Line]:
        self._screen_lines = layout.screen(self.state, width, height)
        if self._screen_lines.table_rows != self.state.rows_shown:
            self.state.rows_shown = self._screen_lines.table_rows
            self.poller.hurry("ranks")
        if self.poller.columns != width:
            self.poller.columns = width
            self.poller.hurry("series", "resources")
        return self._screen_lines.lines

    def on_resize(self, _event: events.Resize) -> None:
        self.state.widths.clear()

    # --- keys: one method for each action of keys.KEYS ---

    def action_leave(self) -> None:
        self.exit()

    def action_show_help(self) -> None:
        self._open(lambda width, _height: pages.help_page(self.state, width))

    def action_show_findings(self) -> None:
        if self.state.summary is not None:
            self._open(lambda width, _height: pages.findings_page(self.state, width))

    def action_show_rank(self) -> None:
        rank = reply.whole(self.state.row_at_cursor, "rank")
        if rank is None:
            return
        self._show_rank(rank)
        self._open(lambda width, height: pages.rank_page(self.state, width, height))

    def _show_rank(self, rank: int) -> None:
        if rank != self.state.choice.rank:
            self.state.choice.rank = rank
            self.state.replies.pop("rank_series", None)
            self.poller.hurry("rank_series")

    def _open(self, draw: Callable[[int, int], list[Line]]) -> None:
        if not isinstance(self.screen, Page):
            self.push_screen(Page(self.state, draw))

    async def action_back(self) -> None:
        if isinstance(self.screen, Page):
            await self.pop_screen()
            self.state.choice.rank = None
        elif self.state.choice.filter:
            self._filter("")
        self.changed()

    def action_sort_next(self) -> None:
        self._sort(1)

    def action_sort_previous(self) -> None:
        self._sort(-1)

    def _sort(self, by: int) -> None:
        names = [column.name for column in SORTABLE]
        at = names.index(self.state.choice.sort)
        self._sort_by(names[(at + by) % len(names)])

    def _sort_by(self, name: str) -> None:
        choice = self.state.choice
        choice.falling = not choice.falling if choice.sort == name else name not in ("rank", "host")
        choice.sort, choice.follow = name, False
        self._to_top()

    def action_reverse(self) -> None:
        self.state.choice.falling = not self.state.choice.falling
        self.state.choice.follow = False
        self._to_top()

    def action_by_node(self) -> None:
        self.state.choice.by_node = not self.state.choice.by_node
        self.state.widths.clear()
        self._to_top()

    def _to_top(self) -> None:
        self.state.choice.cursor = self.state.choice.offset = 0
        self.poller.hurry("ranks")
        self.changed()

    def action_pause(self) -> None:
        choice = self.state.choice
        choice.paused = not choice.paused
        self.state.paused_s = self.state.now()
        if not choice.paused:
            self.poller.hurry(*self.state.replies)
        self.changed()

    def action_follow(self) -> None:
        choice = self.state.choice
        choice.follow = not choice.follow
        if choice.follow:
            choice.sort, choice.falling, choice.filter = "late", True, ""
            self._to_top()
        self.changed()

    def _follow(self) -> None:
        choice = self.state.choice
        if not choice.follow:
            return
        choice.cursor = choice.offset = 0
        slowest = reply.whole(self.state.row_at_cursor, "rank")
        if isinstance(self.screen, Page) and choice.rank is not None and slowest is not None:
            self._show_rank(slowest)

    def action_next_layout(self) -> None:
        at = LAYOUTS.index(self.state.choice.layout)
        self.state.choice.layout = LAYOUTS[(at + 1) % len(LAYOUTS)]
        self.state.widths.clear()
        self.changed()

    def action_move(self, by: int) -> None:
        if isinstance(self.screen, Page):
            self.screen.scroll_lines(by)
            return
        self._move_to(self.state.choice.cursor + by)

    def action_move_page(self, by: int) -> None:
        if isinstance(self.screen, Page):
            self.screen.scroll_lines(by * max(1, self.size.height - 3))
            return
        self._move_to(self.state.choice.cursor + by * max(1, self.state.rows_shown))

    def action_move_to(self, end: int) -> None:
        if isinstance(self.screen, Page):
            self.screen.scroll_lines(1_000_000 if end else -1_000_000)
            return
        self._move_to(self.state.rows_total - 1 if end else 0)

    def _move_to(self, cursor: int) -> None:
        choice = self.state.choice
        choice.follow = False
        choice.cursor = max(0, min(cursor, self.state.rows_total - 1))
        rows = max(1, self.state.rows_shown)
        offset = min(max(choice.offset, choice.cursor - rows + 1), choice.cursor)
        if offset != choice.offset:
            choice.offset = offset
            self.poller.hurry("ranks")
        self.changed()

    # --- the filter's line ---

    def action_filter(self) -> None:
        line = self.query_one("#filter", Input)
        line.value = self.state.choice.filter
        line.add_class("open")
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.has_class("open"):
            self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_filter(event.input)

    def on_key(self, event: events.Key) -> None:
        line = self.focused
        if event.key == "escape" and isinstance(line, Input):
            event.stop()
            event.prevent_default()
            self._close_filter(line)
            self._filter("")

    def _close_filter(self, line: Input) -> None:
        line.remove_class("open")
        self.canvas.focus()

    def _filter(self, words: str) -> None:
        self.state.choice.filter = words.strip()[:100]
        self.state.choice.follow = False
        self._to_top()

    # --- the mouse ---

    def on_click(self, event: events.Click) -> None:
        if isinstance(self.screen, Page):
            return
        row = event.y - self._screen_lines.table_at - 2
        if self._screen_lines.table_at < 0 or row < -1:
            return
        if row == -1:
            if column := ranks.column_at(self.state, self.size.width, event.x):
                self._sort_by(column.name)
        elif row < len(self.state.rows):
            self._move_to(self.state.choice.offset + row)

    def on_mouse_scroll_down(self, _event: events.MouseScrollDown) -> None:
        self.action_move(3)

    def on_mouse_scroll_up(self, _event: events.MouseScrollUp) -> None:
        self.action_move(-3)
