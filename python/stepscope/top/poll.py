"""Asks for what the screen shows, each thing at its own pace.

Nothing is asked for more than once a second, and nothing that takes t to answer more than once in
20 t: so a job of thousands of ranks is looked at less often, and neither the agent nor the terminal
works for more than a twentieth. What a key asked for comes at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import urllib.parse
from collections.abc import Callable
from typing import Any

from stepscope.top import layout, reply, text
from stepscope.top.client import Api, Refused
from stepscope.top.state import COLUMNS, State

TICK_S = 1.0
REST = 20.0  # times what an answer took
MOST_ROWS, MOST_POINTS = 200, 2000


@dataclasses.dataclass
class Due:
    every_s: float
    at_s: float = 0.0
    ended: bool = False  # it was answered of the ended run: that is final


class Poller:
    """`changed` is called after every round that brought something, or whose failure is news."""

    def __init__(self, api: Api, state: State, changed: Callable[[], None]) -> None:
        self._api, self._state, self._changed = api, state, changed
        self._wake = asyncio.Event()
        self._due = {
            "summary": Due(1.0),
            "ranks": Due(1.0),
            "series": Due(1.0),
            "resources": Due(2.0),
            "events": Due(2.0),
            "health": Due(2.0),
            "rank_series": Due(1.0),
        }
        self.columns = 80  # of the screen

    def hurry(self, *names: str) -> None:
        """These are wanted now: sorted, scrolled, filtered."""
        for name in names:
            self._due[name] = Due(self._due[name].every_s)
        self._wake.set()

    def target(self, name: str) -> str:
        """Empty: not wanted now."""
        choice = self._state.choice
        columns = layout.drawn_columns(name, self.columns)
        points = min(max(2, text.spark_values(columns, self._state.glyphs)), MOST_POINTS)
        if name == "summary":
            return "/summary?compact"
        if name in ("series", "rank_series"):
            ask = {"points": points}
            if name == "rank_series":
                if choice.rank is None:
                    return ""
                ask["rank"] = choice.rank
            return "/series?" + urllib.parse.urlencode(ask)
        if name == "resources":
            return f"/resources?points={points}"
        if name != "ranks":
            return "/" + name
        sort = next(column.sort for column in COLUMNS if column.name == choice.sort)
        ask = {
            "by": "node" if choice.by_node else "rank",
            "sort": sort,
            "order": "desc" if choice.falling else "asc",
            "offset": choice.offset,
            "limit": min(max(self._state.rows_shown, 1), MOST_ROWS),
        }
        if choice.filter:
            ask["filter"] = choice.filter
        return "/ranks?" + urllib.parse.urlencode(ask)

    async def run(self) -> None:
        while True:
            self._wake.clear()
            if await self.round():
                self._changed()
            try:
                await asyncio.wait_for(self._wake.wait(), TICK_S)
            except asyncio.TimeoutError:
                continue

    async def round(self) -> bool:
        """Everything that is due, once. False: nothing was."""
        asked = False
        for name, due in self._due.items():
            target = self.target(name)
            if not target or due.ended or self._state.now() < due.at_s:
                continue
            if self._state.choice.paused and name != "rank_series":
                continue
            asked = True
            if not await self._ask(name, target):
                break
        return asked

    async def _ask(self, name: str, target: str) -> bool:
        due = self._due[name]
        begin = self._state.now()
        try:
            value = await self._api.get(target)
        except Refused as error:
            # An older version has no such thing; a later try may find a newer agent.
            due.at_s = begin + 10.0
            if name != "summary":
                self._state.take(name, {"error": error.message})
                return True
            due.at_s = begin + TICK_S
            self._state.fail(error.message, error.hint)
            return False
        except OSError as error:
            due.at_s = begin + TICK_S
            self._state.fail(_why(error), "")
            return False
        if self._due[name] is due:  # else it was hurried meanwhile
            due.at_s = begin + max(due.every_s, REST * (self._state.now() - begin))
        self._accept(name, value)
        due.ended = self._state.ended
        return True

    def _accept(self, name: str, value: Any) -> None:
        was_ended = self._state.ended
        if name == "ranks":
            value = dict(reply.table(value)) | {"offset": self._state.choice.offset}
        self._state.take(name, value)
        if name == "summary" and self._state.ended != was_ended:
            for one, due in self._due.items():  # once more, of the end (or of the life that began)
                if one != "summary":
                    self._due[one] = Due(due.every_s)
            if not self._state.ended:
                self._due["summary"].ended = False


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "the agent does not answer"
    return {
        "FileNotFoundError": "the agent is gone",
        "ConnectionRefusedError": "nobody answers there",
    }.get(type(error).__name__, str(error) or type(error).__name__)
