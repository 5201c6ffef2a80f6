"""Asking tensors and parameters, without a torch function of the user's seeing the question."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any


def disable_torch_function() -> Any:
    """The class torch._C.DisableTorchFunction; None in a torch that has none."""
    torch: Any = sys.modules["torch"]
    return getattr(torch._C, "DisableTorchFunction", None)


def quietly() -> AbstractContextManager[Any]:
    """Neither __torch_function__ of a subclass nor a TorchFunctionMode is called inside."""
    disabled = disable_torch_function()
    return contextlib.nullcontext() if disabled is None else disabled()
