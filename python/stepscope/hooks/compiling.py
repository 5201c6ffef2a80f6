"""compile: from torch._dynamo's callback when a compilation starts to the one when it ends."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native


def install(module: ModuleType) -> None:
    handler: Any = module.callback_handler
    handler.register_start_callback(_native.compile_begin)
    handler.register_end_callback(_native.compile_end)
