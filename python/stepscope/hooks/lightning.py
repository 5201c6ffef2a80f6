"""forward under Lightning: training_step, which is no module call (`trials.md` A)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native
from stepscope.hooks import frameworks


def install(module: ModuleType) -> None:
    strategy: Any = getattr(module, "Strategy", None)
    original = getattr(strategy, "training_step", None)
    if original is None:
        frameworks.missing(module.__name__, "Strategy.training_step")
        return
    strategy.training_step = _native.timed_call(original, _native.Hook.FORWARD)
