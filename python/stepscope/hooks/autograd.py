"""backward: the one function that Tensor.backward, autograd.backward and autograd.grad all call."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from stepscope import _native
from stepscope.hooks.tensors import disable_torch_function


def install(module: ModuleType) -> None:
    import torch

    autograd: Any = module
    autograd._engine_run_backward = _native.timed_call(
        autograd._engine_run_backward, _native.Hook.BACKWARD
    )
    engine: Any = autograd.Variable._execution_engine
    _native.set_torch(
        is_grad_enabled=torch.is_grad_enabled,
        tensor_type=torch.Tensor,
        disable_torch_function=disable_torch_function(),
        queue_callback=engine.queue_callback,
    )
