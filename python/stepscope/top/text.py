"""Text for a terminal: strangers' strings made harmless, columns counted, numbers in few columns.

A line is a list of (text, style) spans; styles are the names in STYLES of app.py. What is missing
reads "-", never 0.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len, set_cell_size

Span = tuple[str, str]
Line = list[Span]

MISSING = "-"
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # moves the cursor, reorders, shows nothing
BLANKS = {"\u115f", "\u1160", "\u3164", "\uffa0", "\u2800"}  # letters that show nothing


@dataclasses.dataclass(frozen=True)
class Glyphs:
    """What the terminal can draw. Bars as on the card: letters where there are no blocks."""

    unicode: bool
    ellipsis: str
    dot: str
    falling: str
    rising: str
    phases: Mapping[str, str]


PHASES = (
    *("input", "h2d", "forward", "backward", "sync", "optimizer"),
    *("checkpoint", "validation", "compile", "gc", "profiler", "other"),
)
UNICODE = Glyphs(True, "…", "·", "▾", "▴", dict(zip(PHASES, "█▙▓▒▚░▀▞▌▄▐·", strict=True)))
ASCII = Glyphs(False, "...", "|", "v", "^", dict(zip(PHASES, "IHFBSOCVKGP.", strict=True)))


def visible(text: str, glyphs: Glyphs) -> str:
    """One line; controls, bidirectional marks, what the terminal has no letters for: escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(letter, glyphs) for letter in text)


def _shown(letter: str, glyphs: Glyphs) -> str:
    hidden = unicodedata.category(letter) in HIDDEN or letter in BLANKS
    if not hidden and (letter.isascii() or glyphs.unicode):
        return " " if letter.isspace() else letter
    code = ord(letter)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def width_of(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def cut(text: str, width: int, glyphs: Glyphs) -> str:
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    end = glyphs.ellipsis if width > len(glyphs.ellipsis) else ""
    return set_cell_size(text, width - len(end)).rstrip() + end


def left(text: str, width: int, glyphs: Glyphs) -> str:
    return set_cell_size(cut(text, width, glyphs), max(width, 0))


def right(text: str, width: int, glyphs: Glyphs) -> str:
    text = cut(text, width, glyphs)
    return " " * (width - cell_len(text)) + text


def fold(text: str, width: int) -> list[str]:
    """At blanks; a word longer than a line is broken."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        while cell_len(word) > width:
            room = width - (cell_len(line) + 1 if line else 0)
            if room > 8 or not line:
                head = set_cell_size(word, room).rstrip()
                lines.append(f"{line} {head}" if line else head)
                line, word = "", word[len(head) :]
            else:
                lines.append(line)
                line = ""
        longer = f"{line} {word}" if line else word
        if cell_len(longer) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line or not lines else lines


def spread(start: Line, end: Line, width: int, glyphs: Glyphs) -> Line:
    """`end` at the right edge, whole; `start` gives way."""
    room = width - width_of(end) - (2 if end else 0)
    kept: Line = []
    for text, style in start:
        shown = cut(text, room, glyphs)
        if shown:
            kept.append((shown, style))
        room -= cell_len(shown)
        if shown != text:
            break
    gap = width - width_of(kept) - width_of(end)
    return [*kept, (" " * max(gap, 0), ""), *end] if end else kept


def joined(parts: Iterable[str], width: int, separator: str) -> str:
    """As many whole parts as fit; the first ones matter most."""
    text = ""
    for part in parts:
        longer = f"{text}{separator}{part}" if text else part
        if cell_len(longer) > width:
            break
        text = longer
    return text


# --- numbers --------------------------------------------------------------------------------------


def decimals_for(largest: float) -> int:
    """Of a column of milliseconds, so that its numbers stand under each other."""
    return 3 if largest < 1 else 2 if largest < 10 else 1 if largest < 10_000 else 0


def plain(value: float | None, decimals: int) -> str:
    return MISSING if value is None else f"{value:,.{decimals}f}"


def count(value: float | None) -> str:
    return plain(value, 0)


def duration(ms: float | None) -> str:
    """0.241 ms, 38.1 ms, 100 ms, 2.41 s, 71.2 s: as on the card."""
    if ms is None:
        return MISSING
    value, unit = (ms, "ms") if ms < 999.5 else (ms / 1000, "s")
    return f"{_three(value)} {unit}"


def _three(value: float) -> str:
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3}f}"


def span(seconds: float | None) -> str:
    """12 s, 3 min 05 s, 2 h 07 min, 3 d 4 h: for what changes under the eye."""
    if seconds is None:
        return MISSING
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole // 60 % 60:02} min"
    return f"{whole // 86400} d {whole // 3600 % 24} h"


def rate(per_s: float | None) -> str:
    if per_s is None:
        return MISSING
    return f"{per_s:,.{0 if per_s >= 99.95 else 1 if per_s >= 9.995 else 2}f}"


def percent(share: float | None) -> str:
    if share is None:
        return MISSING
    value = share * 100
    return f"{value:.{0 if abs(value) >= 9.95 or value == 0 else 1}f} %"


def size(value: float | None) -> str:
    """251 MB, 1.2 GB: as on the card, units of 1,024."""
    if value is None:
        return MISSING
    unit = "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or value >= 9.95 else f"{value:.1f} {unit}"


# --- drawings -------------------------------------------------------------------------------------

LEFT_DOTS = (0x00, 0x40, 0x44, 0x46, 0x47)  # of a braille cell, filled from below
RIGHT_DOTS = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
ASCII_LEVELS = "_.-=#"


def spark_values(width: int, glyphs: Glyphs) -> int:
    """How many values a sparkline of that many columns shows."""
    return 2 * width if glyphs.unicode else width


def spark(
    values: Sequence[float | None], width: int, glyphs: Glyphs, *, low: float, high: float
) -> str:
    """The newest values that fit, at the right. Unknown ones leave a gap."""
    shown = list(values)[-spark_values(width, glyphs) :]
    reach = (high - low) or 1.0
    if not glyphs.unicode:
        last = len(ASCII_LEVELS) - 1
        text = "".join(
            " " if v is None else ASCII_LEVELS[_level((v - low) / reach, last)] for v in shown
        )
        return text.rjust(width)
    shown = [None] * (2 * width - len(shown)) + shown
    levels = [0 if v is None else 1 + _level((v - low) / reach, 3) for v in shown]
    return "".join(
        chr(0x2800 + LEFT_DOTS[a] + RIGHT_DOTS[b]) if a or b else " "
        for a, b in zip(levels[::2], levels[1::2], strict=True)
    )


def _level(share: float, last: int) -> int:
    return round(min(max(share, 0.0), 1.0) * last)


def window(values: Sequence[float], least: float) -> tuple[float, float]:
    """The range to draw: of the values, but at least that share of the highest; never below 0."""
    low, high = min(values), max(values)
    room = max(0.0, least * high - (high - low)) / 2
    low = max(0.0, low - room)
    return low, max(high + room, low + least * high)


# Dots of a braille cell, [side][from above].
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def curve(
    values: Sequence[float | None],
    width: int,
    height: int,
    low: float,
    high: float,
    glyphs: Glyphs,
) -> list[str]:
    """A curve of several lines, `low` below and `high` above; what is beyond lies on the edge."""
    per_line = 4 if glyphs.unicode else 1
    top = per_line * height - 1
    reach = (high - low) or 1.0
    shown = list(values)[-spark_values(width, glyphs) :]
    cells = [[0] * width for _ in range(height)]
    before: int | None = None
    for at, value in enumerate(shown):
        if value is None:
            before = None
            continue
        here = _level((value - low) / reach, top)
        # From beside the one before, so that a jump is a line and not two dots.
        start = here if before is None or before == here else before + (1 if here > before else -1)
        for dot in range(min(start, here), max(start, here) + 1):
            line, rest = divmod(top - dot, per_line)
            column = at // 2 if glyphs.unicode else at
            cells[line][column] |= DOTS[at % 2][rest] if glyphs.unicode else 1
        before = here
    return ["".join(_drawn(cell, glyphs) for cell in row) for row in cells]


def _drawn(cell: int, glyphs: Glyphs) -> str:
    if not cell:
        return " "
    return chr(0x2800 + cell) if glyphs.unicode else "*"


def cells_of(shares: Sequence[float], width: int) -> list[int]:
    """Deals out the columns of a bar by largest remainder; what is there has at least one."""
    total = sum(shares)
    if total <= 0 or not shares:
        return [0] * len(shares)
    exact = [share / total * width for share in shares]
    cells = [max(1, int(one)) for one in exact]
    order = sorted(range(len(cells)), key=lambda i: exact[i] - cells[i], reverse=True)
    for turn in range(max(0, width - sum(cells))):
        cells[order[turn % len(order)]] += 1
    while sum(cells) > max(width, len(cells)):
        cells[cells.index(max(cells))] -= 1
    return cells
