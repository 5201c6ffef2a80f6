"""h2d: copies of CPU tensors to a device. Installed when a root has parameters on one, and never on
a CPU-only run.
"""

from __future__ import annotations

from typing import Any

from stepscope import _native

_installed = False


def saw_root(module: Any) -> None:
    """Look at a new root's parameters: host time is not device time once they are on an
    accelerator.
    """
    if all(parameter.device.type == "cpu" for parameter in module.parameters()):
        return
    _native.set_fact(_native.FACT_ACCELERATOR)
    _install()


def _install() -> None:
    global _installed
    if _installed:
        return
    _installed = True
    import torch

    tensor: Any = torch.Tensor
    hook = _native.Hook
    # As attributes of torch.Tensor they shadow those of TensorBase; Module.to reaches them too.
    tensor.to = _native.timed_call(tensor.to, hook.TO_DEVICE, 0)
    tensor.cuda = _native.timed_call(tensor.cuda, hook.TO_DEVICE, 0)
    tensor.copy_ = _native.timed_call(tensor.copy_, hook.TO_DEVICE, 1)
