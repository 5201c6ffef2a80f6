"""Reads values out of a reply whose shape nobody promised: another version may have sent it, or
no Stepscope at all.

Each function walks `keys` into `value`; whatever is missing or of another type is absent (None, "",
[]), never an error.
"""

from __future__ import annotations

import math
from typing import Any, cast


def at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(key)
    return value


def number(value: Any, *keys: str) -> float | None:
    found = at(value, *keys)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return None
    return float(found)


def whole(value: Any, *keys: str) -> int | None:
    found = number(value, *keys)
    return None if found is None else int(found)


def word(value: Any, *keys: str) -> str:
    found = at(value, *keys)
    return found if isinstance(found, str) else ""


def true(value: Any, *keys: str) -> bool:
    return at(value, *keys) is True


def items(value: Any, *keys: str) -> list[Any]:
    found = at(value, *keys)
    return cast("list[Any]", found) if isinstance(found, list) else []


def table(value: Any, *keys: str) -> dict[str, Any]:
    found = at(value, *keys)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def numbers(value: Any, *keys: str) -> list[float | None]:
    return [number(one) for one in items(value, *keys)]
