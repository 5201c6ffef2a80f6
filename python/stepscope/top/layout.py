"""How the window is divided: which panel gets how many lines, by its size and what was chosen."""

from __future__ import annotations

import dataclasses
import itertools

from stepscope.top import pages, panels, ranks
from stepscope.top.state import State
from stepscope.top.text import Line, spread, width_of

FULL = (110, 30)  # columns and lines from which there is room for everything
LINE = 7  # below so many lines there is one
BESIDE = 140  # columns from which host and events stand beside each other
CHART, MOST_CHART = 7, 14


@dataclasses.dataclass
class Screen:
    lines: list[Line]
    table_at: int = -1  # the line with the table's title; -1: there is none
    table_rows: int = 0


def drawn_columns(name: str, width: int) -> int:
    """Of the curve of that reply, on a screen of that width: so much is asked for."""
    if name == "series":
        return max(1, width - panels.AXIS)
    if name == "rank_series":
        return pages.phase_columns(width)
    return panels.gauge_columns(half_of(width))


def half_of(width: int) -> int:
    return (width - 2) // 2 if width >= BESIDE else width


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
    draw = _waiting if state.summary is None else _full if name == "full" else _compact
    made = draw(state, width, height - 1)
    made.lines = made.lines[: height - 1]
    made.lines += [[] for _ in range(height - 1 - len(made.lines))]
    made.lines.append(panels.key_line(state, width))
    made.lines = [spread(line, [], width, state.glyphs) for line in made.lines]
    return made


def _waiting(state: State, width: int, _height: int) -> Screen:
    """Before the first answer there is nothing to put in panels."""
    return Screen([panels.verdict(state, width), *panels.reasons(state, width, 3)])


def _compact(state: State, width: int, height: int) -> Screen:
    """Verdict, standing, bar, ranks; empty lines and more of the reasons where there is room."""
    airy = height >= 20
    bar = panels.bar(state, width)
    step: list[Line] = [bar, *panels.legend(state, width, 2 if height >= 18 else 1)] if bar else []
    below: list[Line] = []
    if height >= 14:
        below = [panels.resource_line(state, width), panels.event_summary(state, width)]
    fixed = 2 + len(step) + len(below) + (2 if airy and bar else 0)
    spare = height - fixed - 2 - max(state.rows_total, 3)
    most = max(1, min(spare, 5)) if height >= 14 else 0
    if state.steps == 0:
        most = max(most, 3)
    lines = [panels.verdict(state, width), *panels.reasons(state, width, most)]
    lines.append(panels.status(state, width))
    if step:
        lines += [[], *step] if airy else step
    if airy:
        lines.append([])
    at = len(lines)
    rows = ranks.rows_wanted(height - at - len(below))
    table = ranks.table(state, width, rows + 2)
    lines += table + [[] for _ in range(rows + 2 - len(table))]
    return Screen(lines + below, at, rows)


def _full(state: State, width: int, height: int) -> Screen:
    """Everything. What the ranks leave goes to the curve, then to the events."""
    lines = [panels.verdict(state, width), *panels.reasons(state, width, 5), []]
    lines.append(panels.status(state, width))
    if bar := panels.bar(state, width):
        lines += [[], bar, *panels.legend(state, width, 3)]
    beside = width >= BESIDE
    half = half_of(width)
    gauges = panels.resources(state, half, 7 if height < 40 else 12)
    below = max(len(gauges), 5) if beside else len(gauges) + 5
    wanted = 2 + max(state.rows_total, 4)
    spare = height - len(lines) - 1 - CHART - 1 - wanted - 1 - below
    chart = CHART + max(0, min(spare, MOST_CHART - CHART))
    if spare < -wanted + 6:  # a low window: the ranks come before the host
        below = 0
    below += max(0, spare - (chart - CHART))
    lines += [[], *panels.chart(state, width, chart), []]
    at = len(lines)
    rows = ranks.rows_wanted(height - at - below - (1 if below else 0))
    table = ranks.table(state, width, rows + 2)
    lines += table + [[] for _ in range(rows + 2 - len(table))]
    if below and beside:
        lines += [[], *_beside(gauges, panels.events(state, half, below), half)]
    elif below:
        lines += [[], *gauges, [], *panels.events(state, width, below - len(gauges) - 1)]
    return Screen(lines, at, rows)


def _beside(first: list[Line], second: list[Line], half: int) -> list[Line]:
    lines: list[Line] = []
    nothing: Line = []
    for left, right in itertools.zip_longest(first, second, fillvalue=nothing):
        gap = half - width_of(left) + 2
        lines.append([*left, (" " * gap, ""), *right])
    return lines
