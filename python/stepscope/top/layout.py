"""How the window is divided: which panel gets how many lines. A function of the size and of what was chosen."""

from __future__ import annotations

import dataclasses

from stepscope.top import panels, ranks
from stepscope.top.state import State
from stepscope.top.text import Line, spread

FULL = (110, 30)  # columns and lines from which there is room for everything
LINE = 7  # below so many lines there is one
CHART = 7


@dataclasses.dataclass
class Screen:
    lines: list[Line]
    table_at: int = -1  # the line with the table's title; -1: there is none
    table_rows: int = 0


def name_of(choice: str, width: int, height: int) -> str:
    if choice != "auto":
        return choice
    if height < LINE:
        return "line"
    return "full" if width >= FULL[0] and height >= FULL[1] else "compact"


def screen(state: State, width: int, height: int) -> Screen:
    name = name_of(state.choice.layout, width, height)
    if name == "line" or height < 3:
        return Screen([panels.one_line(state, width)])
    draw = _full if name == "full" else _compact
    made = draw(state, width, height - 1)
    made.lines = made.lines[: height - 1]
    made.lines += [[] for _ in range(height - 1 - len(made.lines))]
    made.lines.append(panels.key_line(state, width))
    made.lines = [spread(line, [], width, state.glyphs) for line in made.lines]
    return made


def _compact(state: State, width: int, height: int) -> Screen:
    lines = [panels.verdict(state, width)]
    lines += panels.reasons(state, width, 3 if state.steps == 0 else 1 if height >= 14 else 0)
    lines.append(panels.status(state, width))
    bar = panels.bar(state, width)
    if bar:
        if height >= 20:
            lines.append([])
        lines.append(bar)
        lines += panels.legend(state, width, 2 if height >= 18 else 1)
    if height >= 20:
        lines.append([])
    below = [panels.resource_line(state, width), panels.event_summary(state, width)]
    if height < 14:
        below = []
    at = len(lines)
    rows = ranks.rows_wanted(height - at - len(below) - (1 if below and height >= 20 else 0))
    table = ranks.table(state, width, rows + 2)
    lines += table + [[] for _ in range(rows + 2 - len(table))]
    if below and height >= 20:
        lines.append([])
    return Screen(lines + below, at, rows)


def _full(state: State, width: int, height: int) -> Screen:
    lines = [panels.verdict(state, width), *panels.reasons(state, width, 5), []]
    lines.append(panels.status(state, width))
    bar = panels.bar(state, width)
    if bar:
        lines += [[], bar, *panels.legend(state, width, 3)]
    lines += [[], *panels.chart(state, width, CHART if height < 45 else CHART + 3), []]
    gauges = panels.resources(state, width, 7)
    half = (width - 2) // 2
    side_by_side = width >= 140
    if side_by_side:
        gauges = panels.resources(state, half, 7)
        most = max(len(gauges), 5)
        below = beside(gauges, panels.events(state, half, most), half, most)
    else:
        below = [*gauges, [], *panels.events(state, width, 4)]
    at = len(lines)
    rows = ranks.rows_wanted(height - at - len(below) - 1)
    if rows < 4:  # a low window: the table comes first
        below, rows = [], ranks.rows_wanted(height - at)
    wanted = min(rows, max(state.rows_total, 1))
    table = ranks.table(state, width, wanted + 2)
    spare = rows - wanted
    if below and not side_by_side and spare > 0:
        below = [*gauges, [], *panels.events(state, width, 4 + spare)]
    elif below and spare > 0:
        most = len(below) + spare
        below = beside(gauges, panels.events(state, half, most), half, most)
    return Screen([*lines, *table, [], *below], at, rows)


def beside(first: list[Line], second: list[Line], half: int, most: int) -> list[Line]:
    lines: list[Line] = []
    for at in range(min(most, max(len(first), len(second)))):
        left = first[at] if at < len(first) else []
        right = second[at] if at < len(second) else []
        used = sum(panels.text.width_of([one]) for one in left)
        lines.append([*left, (" " * (half - used + 2), ""), *right])
    return lines
