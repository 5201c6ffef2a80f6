"""Activation checkpointing: how much of a backward is forward, computed again.

It is told as one amount at the end of the backward, whichever of autograd's threads computed it.
Compiled graphs recompute inside their kernels: there is nothing to see there.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native


def install(module: ModuleType) -> None:
    hook = _native.Hook
    context: Any = getattr(module, "_recomputation_hook", None)
    if context is not None:
        # its own attributes, not those of torch.autograd.graph.saved_tensors_hooks below it
        context.__enter__ = _native.timed_call(context.__enter__, hook.RECOMPUTE_ENTER)
        context.__exit__ = _native.timed_call(context.__exit__, hook.RECOMPUTE_EXIT)
    reentrant: Any = getattr(module, "CheckpointFunction", None)
    if reentrant is not None:
        reentrant.backward = staticmethod(_native.timed_call(reentrant.backward, hook.RECOMPUTE))
