"""optimizer: torch's global step hooks, the steps that GradScaler skips, and zero_grad."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from stepscope import _native


def install(module: ModuleType) -> None:
    from torch.compiler import is_dynamo_compiling

    begin, end = _native.optimizer_begin, _native.optimizer_end

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_dynamo_compiling():  # constant while tracing, one call else
            return
        begin(optimizer)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_dynamo_compiling():  # constant while tracing, one call else
            return
        end(optimizer)

    module.register_optimizer_step_pre_hook(before_step)
    module.register_optimizer_step_post_hook(after_step)


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
