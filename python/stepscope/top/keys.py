"""The keys: one table drives dispatch (app.py makes its bindings of it), the key line, the help."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Key:
    keys: str  # as textual names them, with commas between
    shown: str  # as people write it
    action: str  # the app's method action_NAME
    word: str  # in the key line; empty: only in the help
    help: str
    where: str = "main"  # main, page (help, rank, findings), or both


KEYS = (
    Key("q,ctrl+c", "q", "leave", "quit", "quit", "both"),
    Key("question_mark,f1", "?", "show_help", "help", "this help"),
    Key("s", "s", "sort_next", "sort", "sort the ranks by the next column; S by the one before"),
    Key("S,shift+s", "S", "sort_previous", "", ""),
    Key("o", "o", "reverse", "", "the other order"),
    Key("slash", "/", "filter", "filter", "show only ranks whose number or host holds a text"),
    Key("p,space", "p", "pause", "pause", "hold the screen still, and go on"),
    Key("f", "f", "follow", "follow", "keep the cursor on the slowest rank"),
    Key("enter", "Enter", "show_rank", "rank", "everything of the rank under the cursor"),
    Key("v", "v", "show_findings", "findings", "all findings, with evidence and advice"),
    Key("n", "n", "by_node", "nodes", "a line a host instead of a line a rank"),
    Key("l", "l", "next_layout", "layout", "layout: as the window allows, full, compact, one line"),
    Key("down,j", "Down j", "move(1)", "", "one line down; Up k: up", "both"),
    Key("up,k", "Up k", "move(-1)", "", "", "both"),
    Key("pagedown", "PgDn", "move_page(1)", "", "a page down; PgUp: up; Home, End", "both"),
    Key("pageup", "PgUp", "move_page(-1)", "", "", "both"),
    Key("home,g", "Home", "move_to(0)", "", "", "both"),
    Key("end,G", "End", "move_to(1)", "", "", "both"),
    Key(
        "escape",
        "Esc",
        "back",
        "back",
        "leaves a page; empties the filter",
        "both",
    ),
)


def key_line(where: str) -> list[tuple[str, str]]:
    """(key, word) in the order in which they matter."""
    found = [key for key in KEYS if key.word and key.where in (where, "both")]
    if where == "main":
        found = [key for key in found if key.action != "back"]
        order = ("show_help", "leave")
        found.sort(key=lambda key: order.index(key.action) if key.action in order else len(order))
    else:
        found.sort(key=lambda key: key.action != "back")
    return [(key.shown, key.word) for key in found]


def help_rows() -> list[tuple[str, str]]:
    return [(key.shown, key.help) for key in KEYS if key.help]
