"""The ranks table: which columns there is room for, their numbers, the row under the cursor."""

from __future__ import annotations

from typing import Any

from rich.cells import cell_len

from stepscope.top import reply, text
from stepscope.top.state import COLUMNS, Column, State
from stepscope.top.text import Line, visible

TREND = 8  # columns
GAP = 2
OWN_PHASES = [column.phase for column in COLUMNS if column.phase and column.phase != "other"]
LONG_S = 1.0  # a phase that lasts so long is worth its seconds


def rows_wanted(lines: int) -> int:
    return max(0, lines - 2)  # title and head


def table(state: State, width: int, height: int) -> list[Line]:
    """Title, head, and as many rows as there are lines."""
    if not state.rows:
        return [[("RANKS", "title")], [("  " + _why_none(state), "dim")]][:height]
    columns = columns_for(state, width)
    lines = [_title(state, width), _head(state, columns, width)]
    unit, decimals = _memory_unit(state.rows), _decimals(state.rows)
    for at, row in enumerate(state.rows[: max(0, height - 2)]):
        cells = [_cell(column, row, state, unit, decimals) for column in columns]
        line: Line = [(_padded(cells, columns, state), _row_style(row, state))]
        if state.rows_offset + at == state.choice.cursor:
            drawn = text.left(line[0][0], width, state.glyphs)
            line = [(drawn, "cursor")]
        lines.append(line)
    return lines[:height]


def _why_none(state: State) -> str:
    found = state.replies.get("ranks")
    if error := reply.word(found, "error"):
        return visible(error, state.glyphs)
    if state.choice.filter and found is not None:
        return (
            f"no rank or host holds '{visible(state.choice.filter, state.glyphs)}'; Esc shows all"
        )
    return "no rank has made a step yet" if found is not None else "waiting"


def _title(state: State, width: int) -> Line:
    choice = state.choice
    steps = reply.whole(state.replies.get("ranks"), "window_steps")
    window = f"mean of the last {text.count(steps)} steps" if steps else "mean of the last steps"
    sorted_by = next(column.title for column in COLUMNS if column.name == choice.sort)
    arrow = state.glyphs.falling if choice.falling else state.glyphs.rising
    parts = [f"by {sorted_by} {arrow}", f"ms, {window}", f"MEM in {_memory_unit(state.rows)[1]}"]
    if choice.filter:
        parts.insert(0, f"filter '{visible(choice.filter, state.glyphs)}'")
    if choice.follow:
        parts.insert(0, "following the slowest")
    count: Line = []
    if state.rows_total > len(state.rows) or choice.filter:
        first = state.rows_offset + 1 if state.rows else 0
        last = state.rows_offset + len(state.rows)
        count = [(f"{first}-{last} of {text.count(state.rows_total)}", "dim")]
    head = "HOSTS  " if choice.by_node else "RANKS  "
    room = width - len(head) - (text.width_of(count) + 2 if count else 0)
    said = text.joined(parts, room, f" {state.glyphs.dot} ")
    return text.spread([(head, "title"), (said, "dim")], count, width, state.glyphs)


def columns_for(state: State, width: int) -> list[Column]:
    """Those that say something here and fit. A width only grows, so that columns do not dance."""
    columns = [column for column in COLUMNS if _says_something(column, state)]
    unit, decimals = _memory_unit(state.rows), _decimals(state.rows)
    for column in columns:
        cells = [_cell(column, row, state, unit, decimals) for row in state.rows]
        needed = max([cell_len(cell) for cell in cells] + [len(_head_of(column, state))])
        most = {"host": 16, "doing": 20, "trend": TREND}.get(column.name, 12)
        state.widths[column.name] = max(min(needed, most), state.widths.get(column.name, 0))

    def needed_width() -> int:
        return sum(state.widths[column.name] + GAP for column in columns) - GAP

    while len(columns) > 2 and needed_width() > width:
        columns.remove(max(columns, key=lambda column: column.gives_way))
    return columns


def _says_something(column: Column, state: State) -> bool:
    if column.name == "h2d":
        return any(reply.number(row, "phases", "h2d") for row in state.rows)
    if column.name == "host":
        return len({reply.word(row, "node") for row in state.rows}) > 1 or bool(
            (reply.whole(state.summary, "run", "nodes") or 0) > 1
        )
    if column.name == "doing":
        return state.live and any(reply.at(row, "doing") for row in state.rows)
    return True


def _head_of(column: Column, state: State) -> str:
    if column.name == "rank" and state.choice.by_node:
        return "RANKS"
    return column.title + ("x" if column.name == state.choice.sort else "")  # room for the arrow


def _head(state: State, columns: list[Column], width: int) -> Line:
    arrow = state.glyphs.falling if state.choice.falling else state.glyphs.rising
    line: Line = []
    for at, column in enumerate(columns):
        title = _head_of(column, state)
        chosen = column.name == state.choice.sort
        if chosen:
            title = (column.title if title != "RANKS" else title) + arrow
        side = text.right if column.numeric else text.left
        shown = side(title, state.widths[column.name], state.glyphs)
        line.append((shown, "title" if chosen else "dim"))
        if at + 1 < len(columns):
            line.append((" " * GAP, ""))
    return text.spread(line, [], width, state.glyphs)


def column_at(state: State, width: int, x: int) -> Column | None:
    """Whose head is at that column of the screen."""
    end = 0
    for column in columns_for(state, width):
        end += state.widths[column.name] + GAP
        if x < end:
            return column if column.sortable else None
    return None


def _padded(cells: list[str], columns: list[Column], state: State) -> str:
    return (
        (" " * GAP)
        .join(
            (text.right if column.numeric else text.left)(
                cell, state.widths[column.name], state.glyphs
            )
            for cell, column in zip(cells, columns, strict=True)
        )
        .rstrip()
    )


def _row_style(row: Any, state: State) -> str:
    return "dim" if state.live and reply.word(row, "state") in ("gone", "ended") else ""


def _decimals(rows: list[Any]) -> int:
    return text.decimals_for(
        max((reply.number(row, "total_ms") or 0.0 for row in rows), default=0.0)
    )


def _memory_unit(rows: list[Any]) -> tuple[float, str]:
    most = max((reply.number(row, "memory_bytes") or 0.0 for row in rows), default=0.0)
    return (2.0**30, "GB") if most >= 10 * 2.0**30 else (2.0**20, "MB")


def _cell(column: Column, row: Any, state: State, unit: tuple[float, str], decimals: int) -> str:
    if column.name == "rank":
        return text.count(reply.whole(row, "ranks" if state.choice.by_node else "rank"))
    if column.name == "host":
        return visible(reply.word(row, "node"), state.glyphs) or text.MISSING
    if column.name == "step":
        return text.count(reply.whole(row, "step"))
    if column.name == "memory":
        value = reply.number(row, "memory_bytes")
        return text.plain(None if value is None else value / unit[0], 1 if unit[1] == "GB" else 0)
    if column.name == "trend":
        return trend(row, state)
    if column.name == "doing":
        return doing(row, state)
    if column.name == "other":
        return text.plain(rest_ms(row), decimals)
    if column.phase:
        return text.plain(reply.number(row, "phases", column.phase), decimals)
    return text.plain(reply.number(row, f"{column.name}_ms"), decimals)


def rest_ms(row: Any) -> float | None:
    """Of all phases without a column, so that a row adds up to its total."""
    known = [
        ms
        for name in reply.table(row, "phases")
        if name not in OWN_PHASES and (ms := reply.number(row, "phases", name)) is not None
    ]
    return sum(known) if known else None


def trend(row: Any, state: State) -> str:
    """The row's own totals, from lowest to highest, at least a fifth apart: noise stays flat."""
    word = reply.word(row, "state")
    if state.live and word in ("gone", "ended"):
        return word
    values = reply.numbers(row, "trend")
    known = [value for value in values if value is not None]
    if not known:
        return text.MISSING
    low, high = text.window(known, 0.2)
    return text.spark(values, TREND, state.glyphs, low=low, high=high)


def doing(row: Any, state: State) -> str:
    phase = visible(reply.word(row, "doing", "phase"), state.glyphs)
    since_s = reply.number(row, "doing", "since_s")
    if not phase:
        return text.MISSING
    return phase if since_s is None or since_s < LONG_S else f"{phase} for {text.span(since_s)}"
