"""optimizer: torch's global step hooks, the steps that GradScaler skips, and zero_grad."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from stepscope import _native
from stepscope._after_import import after_import

_handles: list[Any] = []


def install(module: ModuleType) -> None:
    """C functions as hooks: they cost a third of what Python ones do between two cold steps."""
    from torch import compiler

    if hasattr(compiler, "substitute_in_graph"):
        _register(module, _native.optimizer_begin, _native.optimizer_end)
        after_import("torch._dynamo", _show_to_dynamo)
    else:
        _register_in_python(module)


def _register(module: ModuleType, before: Any, after: Any) -> None:
    for handle in _handles:
        handle.remove()
    _handles[:] = [
        module.register_optimizer_step_pre_hook(before),
        module.register_optimizer_step_post_hook(after),
    ]


def _show_to_dynamo(dynamo: ModuleType) -> None:
    """Where Dynamo traces through Optimizer.step it would break the graph at a C function it does
    not know: tell it that there is nothing in them.
    """
    from torch import compiler

    def nothing(optimizer: Any, args: Any, kwargs: Any) -> None:
        return None

    try:
        for function in (_native.optimizer_begin, _native.optimizer_end):
            substitute: Any = compiler.substitute_in_graph
            substitute(function, skip_signature_check=True)(nothing)
    except Exception:  # not as we know it: our hooks must not be what breaks graphs
        _register_in_python(sys.modules["torch.optim.optimizer"])


def _register_in_python(module: ModuleType) -> None:
    from torch.compiler import is_dynamo_compiling

    begin, end = _native.optimizer_begin, _native.optimizer_end

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_dynamo_compiling():  # constant while tracing, one call else
            return
        begin(optimizer, args, kwargs)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_dynamo_compiling():
            return
        end(optimizer, args, kwargs)

    _register(module, before_step, after_step)


def watch_zero_grad() -> None:
    """For loops that call no module and fetch from no loader: forward begins at zero_grad there.

    Not before it is known to be needed, and not where something was compiled: a patch in mid-run
    would compile it again.
    """
    module = sys.modules["torch.optim.optimizer"]
    optimizer_type: Any = module.Optimizer
    original = optimizer_type.zero_grad
    zeroed = _native.zero_grad

    @functools.wraps(original)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        zeroed()
        return original(self, *args, **kwargs)

    # Dynamo does not trace torch's own zero_grad and tells it by the file of its code: say the same
    # of ours, should something be compiled later.
    code = original.__code__
    wrapper: Any = zero_grad
    wrapper.__code__ = wrapper.__code__.replace(co_filename=code.co_filename, co_name=code.co_name)
    optimizer_type.zero_grad = wrapper


def install_grad_scaler(module: ModuleType) -> None:
    scaler: Any = module.GradScaler
    scaler._maybe_opt_step = _native.timed_call(scaler._maybe_opt_step, _native.Hook.MAYBE_STEP)
