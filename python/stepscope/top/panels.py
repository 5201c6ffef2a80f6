"""The parts of the screen, each a function of the state: lines, at most `width` columns wide."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.top import keys, reply, text
from stepscope.top.state import State
from stepscope.top.text import Line, visible

STYLE_OF = {"critical": "critical", "warning": "warning", "info": "strong"}
LABEL = 12  # columns of "  evidence  "


def severity_word(finding: Any) -> str:
    severity = reply.word(finding, "severity") or "info"
    possible = ", possible" if reply.word(finding, "confidence") == "possible" else ""
    return severity + possible


def style_of(finding: Any) -> str:
    return STYLE_OF.get(reply.word(finding, "severity"), "strong")


def title_of(finding: Any, state: State) -> str:
    return visible(reply.word(finding, "title"), state.glyphs)


# --- the first lines ------------------------------------------------------------------------------


def verdict(state: State, width: int) -> Line:
    finding = reply.at(state.summary, "verdict")
    if state.summary is None:
        what, style = state.standing()
        return [
            (what.upper(), style),
            ("  " + visible(state.problem or state.place, state.glyphs), ""),
        ]
    start: Line = [
        (visible(reply.word(finding, "code"), state.glyphs), style_of(finding)),
        ("  " + title_of(finding, state), ""),
    ]
    return text.spread(start, [(severity_word(finding), style_of(finding))], width, state.glyphs)


def reasons(state: State, width: int, most: int) -> list[Line]:
    """Evidence, what to try, what else was found, why there is nothing: at most so many lines.

    Where there is room for little, what to do comes before why.
    """
    if most <= 0:
        return []
    if state.summary is None:
        hint = state.hint or "waiting for the run; q leaves"
        return [_label("hint", visible(hint, state.glyphs))]
    finding = reply.at(state.summary, "verdict")
    why: list[Line] = []
    if state.steps == 0:
        for one in reply.items(state.summary, "unobserved")[:2]:
            why += labelled("why", visible(str(one), state.glyphs), width, 2, state)
    else:
        shown = text.joined(evidence(finding, state), width - LABEL, ", ")
        if shown:
            why.append(_label("evidence", shown))
    todo: list[Line] = []
    for one in advice(finding, state)[:2]:
        todo += labelled("try", one, width, 1 if most < 4 else 2, state)
    others = reply.items(state.summary, "findings")[1:]
    also: list[Line] = []
    for other in [one for one in others if reply.word(one, "severity") in ("critical", "warning")]:
        code = visible(reply.word(other, "code"), state.glyphs)
        said = f"{code} ({severity_word(other)})  {title_of(other, state)}"
        also.append(_label("also", text.cut(said, width - LABEL, state.glyphs)))
    if most == 1:
        return (todo or why or also)[:1]
    return [*why, *todo, *also][:most]


def advice(finding: Any, state: State) -> list[str]:
    said: list[str] = []
    for one in reply.items(finding, "advice"):
        gain = reply.number(one, "gain")
        if gain is not None and gain <= 0:
            continue
        saves = f" Saves up to {text.percent(gain)}." if gain is not None and gain >= 0.01 else ""
        said.append(visible(reply.word(one, "text"), state.glyphs) + saves)
    return said


def evidence(finding: Any, state: State) -> list[str]:
    """As on the card: what the title does not say already."""
    known = {reply.word(one, "name"): one for one in reply.items(finding, "evidence")}
    low, high = (reply.number(known.get(name), "value") for name in ("share_low", "share_high"))
    parts: list[str] = []
    for name, one in known.items():
        value, unit = reply.number(one, "value"), reply.word(one, "unit")
        if value is None or name in ("share_high", "ranks", "steady_steps"):
            continue
        if unit == "share" and value in (0, reply.number(finding, "share")):
            continue
        if name == "share_low" and high is not None:
            bounds = text.percent(low), text.percent(high)
            if bounds[0] != bounds[1]:
                parts.append(f"{bounds[0]} to {bounds[1]} (95 % interval)")
            continue
        parts.append(f"{readable(visible(name, state.glyphs))} {quantity(value, unit)}")
    return parts


def readable(name: str) -> str:
    for unit in ("_share", "_ms", "_bytes"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")


def quantity(value: float, unit: str) -> str:
    if unit == "share":
        return text.percent(value)
    if unit == "ms":
        return text.duration(value)
    if unit in ("bytes", "bytes/step"):
        return text.size(value) + (" a step" if unit == "bytes/step" else "")
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def labelled(label: str, said: str, width: int, most: int, state: State) -> list[Line]:
    room = max(8, width - LABEL)
    lines = text.fold(said, room)
    if len(lines) > most:
        lines = [*lines[: most - 1], text.cut(" ".join(lines[most - 1 :]), room, state.glyphs)]
    return [_label(label if at == 0 else "", line) for at, line in enumerate(lines)]


def _label(label: str, said: str) -> Line:
    return [(f"  {label:<{LABEL - 2}}", "dim"), (said, "")]


def status(state: State, width: int) -> Line:
    """Where the run stands, how quick it is; at the right what is wrong with Stepscope itself."""
    words, style = state.standing()
    start: Line = [(words, style)]
    dot = f" {state.glyphs.dot} "
    summary = state.summary
    parts: list[str] = []
    if state.step is not None:
        parts.append(f"step {text.count(state.step)}")
    mean_ms = reply.number(summary, "steps", "mean_ms")
    if mean_ms is not None:
        parts.append(f"{text.duration(mean_ms)} a step")
    samples, steps = (
        reply.number(summary, "throughput", f"{one}_per_s") for one in ("samples", "steps")
    )
    if samples is not None:
        parts.append(f"{text.rate(samples)} samples/s")
    elif steps is not None:
        parts.append(f"{text.rate(steps)} steps/s")
    ranks, nodes = (reply.whole(summary, "run", one) for one in ("ranks", "nodes"))
    if ranks is not None and ranks > 1:
        hosts = f" on {nodes} hosts" if nodes is not None and nodes > 1 else ""
        parts.append(f"{text.count(ranks)} ranks{hosts}")
    seconds = reply.number(summary, "run", "duration_s")
    if seconds is not None:
        parts.append(text.span(seconds))
    if name := reply.word(summary, "run", "name"):
        parts.append(visible(name, state.glyphs))
    wrong = visible(state.health(), state.glyphs)
    end: Line = [("! " + text.cut(wrong, width // 2, state.glyphs), "warning")] if wrong else []
    room = width - len(words) - (text.width_of(end) + 2 if end else 0)
    said = text.joined(parts, room - len(dot), dot)
    if said:
        start.append((dot + said, ""))
    return text.spread(start, end, width, state.glyphs)


# --- where the step goes --------------------------------------------------------------------------

LEAST_SHARE = 0.0005  # what rounds to 0.0 % is not in the bar


def _phases(state: State) -> list[tuple[str, str, float, float | None]]:
    """(glyph, name, share, mean_ms) of the phases with time in them, in their order."""
    found: list[tuple[str, str, float, float | None]] = []
    users = 0
    for name, row in reply.table(state.summary, "phases").items():
        glyph = state.glyphs.phases.get(name)
        if glyph is None:
            glyph = chr(ord("a") + users % 26)
            users += 1
        share = reply.number(row, "share")
        if share is not None and share >= LEAST_SHARE:
            shown = text.cut(visible(name, state.glyphs), 16, state.glyphs)
            found.append((glyph, shown, share, reply.number(row, "mean_ms")))
    return found


def bar(state: State, width: int) -> Line:
    parts = _phases(state)
    guilty = reply.word(state.summary, "verdict", "phase")
    line: Line = []
    cells = text.cells_of([share for _, _, share, _ in parts], width)
    for (glyph, name, _, _), cell in zip(parts, cells, strict=True):
        style = style_of(reply.at(state.summary, "verdict")) if name == guilty else ""
        line.append((glyph * cell, style))
    return line


def legend(state: State, width: int, most: int) -> list[Line]:
    parts = _phases(state)
    guilty = reply.word(state.summary, "verdict", "phase")
    cells = [
        (glyph, name, text.percent(share), text.duration(mean_ms))
        for glyph, name, share, mean_ms in parts
    ]
    if not cells:
        return []
    wide = [max(len(cell[i]) for cell in cells) for i in (2, 3)]
    names = max(text.width_of([(cell[1], "")]) for cell in cells)
    across = max(1, min(len(cells), (width + 3) // (2 + names + 1 + wide[0] + 2 + wide[1] + 3)))
    lines: list[Line] = []
    for at, (glyph, name, share, ms) in enumerate(cells):
        if at % across == 0:
            lines.append([])
        else:
            lines[-1].append(("   ", ""))
        style = style_of(reply.at(state.summary, "verdict")) if name == guilty else ""
        shown = text.left(name, names, state.glyphs)
        lines[-1].append((f"{glyph} {shown} {share:>{wide[0]}}", style))
        lines[-1].append((f"  {ms:>{wide[1]}}", "dim"))
    if len(lines) > most:
        lines = lines[:most]
        left = len(cells) - most * across
        lines[-1].append((f"   +{left}", "dim"))
    return lines


MARKS = {
    "finding": "!",
    "checkpoint": "C",
    "validation": "V",
    "compile": "K",
    "profiler": "P",
    "epoch_start": "E",
    "gc": "G",
}  # the most important first: it is drawn where several fall on one column


AXIS = 9  # columns of the numbers beside the curve


def chart(state: State, width: int, height: int) -> list[Line]:
    """The step's length over the whole run, with what happened marked below: `height` lines."""
    series = state.replies.get("series")
    values = reply.numbers(series, "total_ms")
    title: Line = [("STEP TIME", "title")]
    first, last = (reply.whole(series, key) for key in ("first", "last"))
    known = steady(series, values)
    if first is None or last is None or not known:
        return [title, [("  no step yet", "dim")]][:height]
    title.append((f"  steps {text.count(first)} to {text.count(last)}, mean of each block", "dim"))
    longest = max((v for v in reply.numbers(series, "total_max_ms") if v is not None), default=None)
    if longest is not None:
        title.append((f"; longest step {text.duration(longest)}", "dim"))
    low, high = text.window(known, 0.4)
    across = width - AXIS
    lines: list[Line] = [title]
    rows = max(1, height - 2)
    for at, row in enumerate(text.curve(values, across, rows, low, high, state.glyphs)):
        label = text.duration(high) if at == 0 else text.duration(low) if at == rows - 1 else ""
        lines.append([(f"{label:>{AXIS - 1}} ", "dim"), (row.rstrip(), "")])
    lines.append([(" " * AXIS, ""), (marks(state, series, len(values), across), "dim")])
    return lines[:height]


def steady(series: Any, values: list[float | None]) -> list[float]:
    """What the scale is of: a warm-up step may be many times longer, and lies on the edge."""
    until = reply.number(series, "warmup_until") or 0
    firsts = reply.numbers(series, "first_step")
    pairs = zip(values, firsts, strict=False)
    steady = [v for v, at in pairs if v is not None and at is not None and at >= until]
    return steady or [value for value in values if value is not None]


def marks(state: State, series: Any, points: int, across: int) -> str:
    per_column = text.spark_values(1, state.glyphs)
    firsts = [int(v or 0) for v in reply.numbers(series, "first_step")]
    columns = [" "] * across
    order = list(MARKS)
    for event in reply.items(state.replies.get("events"), "events"):
        kind, step = reply.word(event, "kind"), reply.whole(event, "step")
        if kind not in MARKS or step is None or not firsts or step < firsts[0]:
            continue
        block = max(at for at in range(min(points, len(firsts))) if firsts[at] <= step)
        at = min(block // per_column, across - 1)
        there = columns[at]
        if there == " " or order.index(kind) < list(MARKS.values()).index(there):
            columns[at] = MARKS[kind]
    return "".join(columns).rstrip()


# --- host and events ------------------------------------------------------------------------------

GAUGES = (
    ("cpu_cores", "cpu", "cpu", "cores"),
    ("memory_bytes", "memory", "memory", "bytes"),
    ("worker_memory_bytes", "workers", "", "bytes"),
    ("gpu_memory_bytes", "gpu memory", "gpus", "bytes"),
    ("cpu_wait_share", "cpu wait", "", "share"),
)


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return text.MISSING
    if unit == "bytes":
        return text.size(value)
    return text.percent(value) if unit == "share" else f"{value:.1f} {unit}"


@dataclasses.dataclass
class Gauge:
    label: str
    said: str  # the newest reading and its limit, else average and peak, else why there is none
    curves: list[tuple[str, list[float | None]]]  # of whom, and over time


def _gauges(state: State) -> list[Gauge]:
    found: list[Gauge] = []
    series = reply.items(state.replies.get("resources"), "series")
    for name, label, key, unit in GAUGES:
        curves = [
            (_whose(one, state), values)
            for one in series
            if reply.word(one, "name") == name and (values := reply.numbers(one, "values"))
        ]
        curves = [(whose, values) for whose, values in curves if any(v is not None for v in values)]
        row = reply.at(state.summary, "resources", key) if key else None
        limit = reply.number(row, "limit")
        of = ""
        if limit is not None:
            of = f" of {limit:g}" if unit == "cores" else f" of {_amount(limit, unit)}"
        if len(curves) == 1:
            found.append(Gauge(label, _newest(curves[0][1], unit) + of, curves))
        elif (average := reply.number(row, "average")) is not None:
            peak = _amount(reply.number(row, "peak"), unit).removesuffix(" cores")
            said = f"{_amount(average, unit)} average, {peak} peak{of}"
            whose = [(f"{who}  {_newest(values, unit)}", values) for who, values in curves]
            found.append(Gauge(label, said, whose))
        elif label in ("cpu", "memory"):
            note = visible(reply.word(row, "note"), state.glyphs)
            found.append(Gauge(label, f"{text.MISSING}  {note}", []))
    return found


def _whose(series: Any, state: State) -> str:
    rank = reply.whole(series, "rank")
    return f"rank {rank}" if rank is not None else visible(reply.word(series, "node"), state.glyphs)


def _newest(values: list[float | None], unit: str) -> str:
    return _amount(next((value for value in reversed(values) if value is not None), None), unit)


def resources(state: State, width: int, most: int) -> list[Line]:
    """A line a gauge; where several ranks or hosts have a curve each, these below it if all fit."""
    lines: list[Line] = [[("HOST", "title"), ("  over the run, the newest at the right", "dim")]]
    gauges = _gauges(state)
    single = [gauge for gauge in gauges if len(gauge.curves) == 1]
    several = sum(len(gauge.curves) for gauge in gauges if gauge not in single)
    room = gauge_columns(width)
    for gauge in gauges:
        head = (f"  {gauge.label:<{LABEL - 2}}", "dim")
        if gauge in single and room >= 8:
            drawn = _drawn(gauge.curves[0][1], room, state)
            lines.append([head, (drawn, ""), (text.cut(gauge.said, 26, state.glyphs), "")])
            continue
        lines.append([head, (text.cut(gauge.said, width - LABEL, state.glyphs), "")])
        if gauge in single or room < 8 or len(gauges) + several >= most:
            continue
        for whose, values in gauge.curves:
            said = (text.cut(whose, 26, state.glyphs), "dim")
            lines.append([(" " * LABEL, ""), (_drawn(values, room, state), ""), said])
    return lines[:most]


def gauge_columns(width: int) -> int:
    """Of the curve of a gauge, in a panel of that width."""
    return max(1, width - LABEL - 28)


def _drawn(values: list[float | None], room: int, state: State) -> str:
    high = max(value for value in values if value is not None)
    return text.spark(values, room, state.glyphs, low=0.0, high=high) + "  "


def resource_line(state: State, width: int) -> Line:
    parts = [f"{gauge.label} {gauge.said}" for gauge in _gauges(state)]
    return [(text.joined(parts, width, f" {state.glyphs.dot} "), "")]


def events(state: State, width: int, most: int, rank: int | None = None) -> list[Line]:
    """The newest first."""
    lines: list[Line] = [[("EVENTS", "title"), ("  newest first", "dim")]]
    found = reply.items(state.replies.get("events"), "events")
    if rank is not None:
        found = [one for one in found if reply.whole(one, "rank") in (rank, None)]
    for event in reversed(found):
        if len(lines) >= most:
            break
        lines.append(event_line(event, state, width))
    if len(lines) == 1:
        error = reply.word(state.replies.get("events"), "error")
        lines.append([("  " + (visible(error, state.glyphs) or "none yet"), "dim")])
    return lines[:most]


def event_line(event: Any, state: State, width: int) -> Line:
    step, last = (reply.whole(event, key) for key in ("step", "last_step"))
    when = text.count(step) + (f"-{text.count(last)}" if last not in (None, step) else "")
    kind, code, severity = (reply.word(event, key) for key in ("kind", "code", "severity"))
    rank = reply.whole(event, "rank")
    name = code or kind.replace("_", " ")
    # What the column before it says already is not said again.
    said = [visible(reply.word(event, "text").removeprefix(name).strip(), state.glyphs)]
    ms = text.duration(reply.number(event, "duration_ms"))
    if ms != text.MISSING and ms not in said[0]:
        said.append(ms)
    if rank is not None and kind != "finding" and " ranks)" not in said[0]:
        said.append(f"rank {rank}")
    if reply.at(event, "open") is True:
        said.append("still going on")
    line: Line = [
        (f"  {when:>13}  ", "dim"),
        (
            f"{text.left(visible(name, state.glyphs), 12, state.glyphs)}  ",
            STYLE_OF.get(severity, ""),
        ),
        (", ".join(one for one in said if one), ""),
    ]
    return text.spread(line, [], width, state.glyphs)


def event_summary(state: State, width: int) -> Line:
    """One line: the newest events."""
    parts: list[str] = []
    for event in reversed(reply.items(state.replies.get("events"), "events")):
        if reply.word(event, "kind") in ("gc", "epoch_start"):
            continue
        name = reply.word(event, "code") or reply.word(event, "kind").replace("_", " ")
        ms = reply.number(event, "duration_ms")
        took = f" {text.duration(ms)}" if ms is not None else ""
        step = text.count(reply.whole(event, "step"))
        parts.append(f"{visible(name, state.glyphs)} at step {step}{took}")
    said = text.joined(parts, width - 8, f" {state.glyphs.dot} ")
    return [("events  ", "dim"), (said or "none yet", "" if said else "dim")]


# --- the last line --------------------------------------------------------------------------------


def key_line(state: State, width: int, where: str = "main") -> Line:
    on = {
        "pause": state.choice.paused,
        "follow": state.choice.follow,
        "nodes": state.choice.by_node,
    }
    line: Line = []
    for key, word in keys.key_line(where):
        if text.width_of(line) + len(key) + len(word) + 3 > width:
            break
        line += [(key, "key"), (f" {word}  ", "strong" if on.get(word) else "dim")]
    return line


def one_line(state: State, width: int) -> Line:
    """The whole view in a line."""
    if state.summary is None:
        return text.spread(verdict(state, width), [], width, state.glyphs)
    finding = reply.at(state.summary, "verdict")
    words, style = state.standing()
    dot = f" {state.glyphs.dot} "
    end: Line = [(words, style)]
    if state.step is not None:
        end.append((f"{dot}step {text.count(state.step)}", ""))
    mean_ms = reply.number(state.summary, "steps", "mean_ms")
    if mean_ms is not None:
        end.append((f"{dot}{text.duration(mean_ms)}", ""))
    start: Line = [
        (visible(reply.word(finding, "code"), state.glyphs), style_of(finding)),
        ("  " + title_of(finding, state), ""),
    ]
    values = reply.numbers(state.replies.get("series"), "total_ms")
    known = [value for value in values if value is not None]
    if known and width >= 60:
        low, high = text.window(steady(state.replies.get("series"), values), 0.4)
        drawn = text.spark(values, 8, state.glyphs, low=low, high=high)
        end = [(drawn + dot, ""), *end]
    return text.spread(start, end, width, state.glyphs)
