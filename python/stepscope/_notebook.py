"""The live output of a notebook cell, and the card when the run is over.

Without a thread, and without a call on the step path of anybody who did not ask for it: while the
output is on, backward's hook calls `_tick` when it is left, which once a second asks the agent for
its card and sends it to the cell. What it takes is a row of its own, `live view`. When the
cell ends, by whatever, it is drawn a last time.

IPython is not imported here: it runs already, or there is no notebook.
"""

from __future__ import annotations

import html
import os
import sys
import time
from typing import Any

import stepscope
from stepscope import _ask, _native, _session

EVERY_S = 1.0
WITHIN_S = 0.05  # for one picture; the second that follows is free of it
_CARD = "/v1/card?width=88"

_display: Any = None  # the handle of the output in the cell that runs
_next_s = 0.0
_shell: Any = None  # watched for the end of cells


def show(*, always: bool = False) -> None:
    """Draw from now on. always: in a terminal's IPython too, where nothing can be redrawn."""
    global _shell
    shell: Any = sys.modules["IPython"].get_ipython()
    if shell is None or not (always or _is_notebook(shell)):
        return
    if _shell is None:
        _shell = shell
        shell.events.register("pre_run_cell", _cell_begins)
        shell.events.register("post_run_cell", _cell_ends)
    _cell_begins()
    _native.set_live_view(_tick)


def hide() -> None:
    global _shell, _display
    _native.set_live_view(None)
    if _shell is not None:
        for name, function in (("pre_run_cell", _cell_begins), ("post_run_cell", _cell_ends)):
            _shell.events.unregister(name, function)
    _shell = _display = None


def show_card(folder: str) -> bool:
    """The card of a run that is over, into the cell. False: no cell, or no card in time."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not _is_notebook(shell):
        return False
    from stepscope import _runless

    text = _runless.wait_for_card(folder)
    if text is not None:
        _display_of()(_Text(text))
    return text is not None


def _is_notebook(shell: Any) -> bool:
    """Jupyter's shell, or one made from it, as Colab's is."""
    return any(base.__name__ == "ZMQInteractiveShell" for base in type(shell).__mro__)


class _Text:
    """Text in a fixed width: a front end that cannot show HTML shows it plain."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        style = "font-family:monospace;line-height:1.2;white-space:pre;margin:0"
        return f'<pre style="{style}">{html.escape(self._text)}</pre>'


def _display_of() -> Any:
    import importlib

    return importlib.import_module("IPython.display").display


def _cell_begins(*_: Any) -> None:
    """The output belongs to the cell that trains: it is made with the first picture."""
    global _display, _next_s
    _display, _next_s = None, time.monotonic() + EVERY_S


def _cell_ends(*_: Any) -> None:
    if _display is not None:
        _draw()


def _tick() -> None:
    global _next_s
    if time.monotonic() < _next_s:
        return
    with stepscope.phase("live view"):
        _draw()
    _next_s = time.monotonic() + EVERY_S


def _draw() -> None:
    global _display
    folder = _session.segment_folder()
    card = _ask.ask(folder, _CARD, within_s=WITHIN_S) if folder is not None else None
    if not card:
        return
    picture = _Text(card.decode(errors="replace"))
    if _display is None:
        _display = _display_of()(
            picture, display_id=f"stepscope-{os.getpid()}-{time.monotonic_ns()}"
        )
    else:
        _display.update(picture)
