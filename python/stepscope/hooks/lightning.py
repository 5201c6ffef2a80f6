"""forward under Lightning: training_step, which is no module call (`trials.md` A)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native


def install(module: ModuleType) -> None:
    strategy: Any = module.Strategy
    strategy.training_step = _native.timed_call(strategy.training_step, _native.Hook.FORWARD)
