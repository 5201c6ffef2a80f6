"""The pages that a key opens over the view: help, a rank, all findings. Functions of the state."""

from __future__ import annotations

from stepscope.top import keys, panels, ranks, reply, text
from stepscope.top.state import State
from stepscope.top.text import Line, visible

LEGEND = (
    ("LATE", "how long the others waited for this rank, a step"),
    ("OTHER", "every phase without a column of its own; a row adds up to its TOTAL"),
    ("TREND", "the row's last totals, from its lowest to its highest, at least a fifth apart"),
    ("-", "not measured; 0 was measured"),
    ("! ...", "something is wrong with Stepscope itself; nothing there: all is well"),
)


def help_page(state: State, width: int) -> list[Line]:
    lines: list[Line] = [[("KEYS", "title")], []]
    lines += _table([(shown, said) for shown, said in keys.help_rows()], width, state)
    lines += [[], [("THE TABLE", "title")], []]
    lines += _table(list(LEGEND), width, state)
    lines += [[], [("MARKS BELOW THE STEP TIME", "title")], []]
    lines += _table(
        [(mark, kind.replace("_", " ")) for kind, mark in panels.MARKS.items()], width, state
    )
    return lines


def _table(rows: list[tuple[str, str]], width: int, state: State) -> list[Line]:
    wide = max(len(first) for first, _ in rows)
    lines: list[Line] = []
    for first, second in rows:
        for at, said in enumerate(text.fold(second, max(8, width - wide - 5))):
            head = first if at == 0 else ""
            lines.append([(f"  {head:<{wide}}   ", "key"), (said, "")])
    return lines


def findings_page(state: State, width: int) -> list[Line]:
    lines: list[Line] = []
    for finding in reply.items(state.summary, "findings"):
        code = visible(reply.word(finding, "code"), state.glyphs)
        style = panels.style_of(finding)
        end: Line = [(panels.severity_word(finding), style)]
        lines += [[], text.spread([(code, style)], end, width, state.glyphs)]
        lines += panels.labelled("", panels.title_of(finding, state), width, 4, state)
        first, last = (reply.whole(finding, key) for key in ("first_step", "last_step"))
        if first is not None:
            said = f"{text.count(first)} to {text.count(last)}"
            lines += panels.labelled("steps", said, width, 1, state)
        if parts := panels.evidence(finding, state):
            lines += panels.labelled("evidence", ", ".join(parts), width, 6, state)
        for why in reply.items(finding, "not_measured"):
            lines += panels.labelled("unknown", visible(str(why), state.glyphs), width, 2, state)
        for advice in reply.items(finding, "advice"):
            said = visible(reply.word(advice, "text"), state.glyphs)
            lines += panels.labelled("try", said, width, 6, state)
            for label, key in (("check", "verify"), ("not if", "will_not_help_if")):
                if more := reply.word(advice, key):
                    lines += panels.labelled(label, visible(more, state.glyphs), width, 3, state)
    notices = [
        *(("notice", one) for one in reply.items(state.summary, "notices")),
        *(("unseen", one) for one in reply.items(state.summary, "unobserved")),
    ]
    if notices:
        lines += [[], [("ALSO", "title")]]
    for label, said in notices:
        lines += panels.labelled(label, visible(str(said), state.glyphs), width, 4, state)
    head = visible(reply.word(state.summary, "run", "name"), state.glyphs)
    return [[("FINDINGS  ", "title"), (text.cut(head, width - 10, state.glyphs), "dim")], *lines]


def rank_page(state: State, width: int, height: int) -> list[Line]:
    rank = state.choice.rank
    row = next((one for one in state.rows if reply.whole(one, "rank") == rank), None)
    node = visible(reply.word(row, "node"), state.glyphs)
    head: Line = [(f"RANK {rank}", "title"), (f"  {node}" if node else "", "")]
    if state.choice.follow:
        head.append(("  following the slowest", "dim"))
    state_word = reply.word(row, "state")
    end: Line = [(state_word, "warning" if state_word == "gone" else "dim")] if state_word else []
    lines: list[Line] = [text.spread(head, end, width, state.glyphs)]
    if row is not None:
        lines += [_facts(row, state, width), []]
    lines += _phase_table(row, state, width)
    for finding in reply.items(state.summary, "findings"):
        if reply.whole(finding, "rank") == rank:
            code = visible(reply.word(finding, "code"), state.glyphs)
            said = f"{code}  {panels.title_of(finding, state)}"
            lines += [[], [(text.cut(said, width, state.glyphs), panels.style_of(finding))]]
    lines.append([])
    return [*lines, *panels.events(state, width, max(4, height - len(lines)), rank)]


def _facts(row: object, state: State, width: int) -> Line:
    late, total, own = (reply.number(row, f"{name}_ms") for name in ("late", "total", "own"))
    cores = reply.number(row, "cpu_cores")
    parts = [
        f"step {text.count(reply.whole(row, 'step'))}",
        f"{text.duration(total)} a step",
        f"its own {text.duration(own)}",
        f"late {text.duration(late)}",
        f"cpu {text.rate(cores)} cores",
        f"memory {text.size(reply.number(row, 'memory_bytes'))}",
        f"now {ranks.doing(row, state)}",
    ]
    return [("  " + text.joined(parts, width - 2, f" {state.glyphs.dot} "), "")]


def phase_columns(width: int) -> int:
    """Of the curve of a phase."""
    return min(max(1, width - 36), 100)


def _phase_table(row: object, state: State, width: int) -> list[Line]:
    """Each phase: here, over all ranks, and over the run."""
    series = state.replies.get("rank_series")
    curves = {
        reply.word(one, "name"): reply.numbers(one, "ms") for one in reply.items(series, "phases")
    }
    head = f"  {'PHASE':<12} {'HERE':>9} {'ALL':>9}"
    lines: list[Line] = [[(head, "dim"), ("  ms; over the run", "dim")]]
    room = phase_columns(width)
    for name, phase in reply.table(state.summary, "phases").items():
        here, everywhere = reply.number(row, "phases", name), reply.number(phase, "mean_ms")
        if not here and not everywhere:
            continue
        decimals = text.decimals_for(reply.number(row, "total_ms") or 1.0)
        shown = text.left(visible(name, state.glyphs), 12, state.glyphs)
        line = f"  {shown} {text.plain(here, decimals):>9} {text.plain(everywhere, decimals):>9}  "
        known = panels.steady(series, curves.get(name, []))
        if known and room >= 8:
            low, high = text.window(known, 0.5)
            line += text.spark(curves[name], room, state.glyphs, low=low, high=high)
        lines.append([(line.rstrip(), "")])
    return lines
