"""optimizer under DeepSpeed: what the engine does around Optimizer.step is its as well, and a step
that an overflow skips is told apart.

ZeRO and the fp16 and bf16 optimizers are no torch.optim.Optimizer: they reduce, scale, clip and
gather around the step of one, or look at the gradients and leave it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native
from stepscope.hooks import frameworks


def install(module: ModuleType) -> None:
    engine: Any = getattr(module, "DeepSpeedEngine", None)
    original = getattr(engine, "_take_model_step", None)
    if original is None:
        frameworks.missing(module.__name__, "DeepSpeedEngine._take_model_step")
        return
    step = _native.timed_call(original, _native.Hook.MAYBE_STEP)
    engine._take_model_step = _native.named_call(step, "optimizer")
