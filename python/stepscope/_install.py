"""Puts the hooks in: the one table of which hook goes where. Each hook is a file in hooks/."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from types import ModuleType

from stepscope import _native, _session
from stepscope._after_import import after_import
from stepscope.hooks import (
    autograd,
    checkpoint,
    compiling,
    dataloader,
    deepspeed,
    distributed,
    frameworks,
    lightning,
    loader_settings,
    modules,
    optimizer,
    profiler,
    recompute,
)

_HOOKS: list[tuple[str, Callable[[ModuleType], None]]] = [
    ("torch.utils.data.dataloader", dataloader.install),
    ("torch.utils.data.dataloader", loader_settings.install),
    ("torch.nn.modules.module", modules.install),
    ("torch.autograd", autograd.install),
    ("torch.optim.optimizer", optimizer.install),
    ("torch.amp.grad_scaler", optimizer.install_grad_scaler),
    ("torch.serialization", checkpoint.install),
    ("torch.distributed.checkpoint.state_dict_saver", checkpoint.install_distributed),
    ("safetensors.torch", checkpoint.install_safetensors),
    ("torch.utils.checkpoint", recompute.install),
    ("torch._dynamo.callback", compiling.install),
    ("torch.autograd.profiler", profiler.install),
    ("torch.distributed.distributed_c10d", distributed.install),
    ("torch.nn.parallel.distributed", distributed.install_ddp),
    ("lightning.pytorch.strategies.strategy", lightning.install),
    ("pytorch_lightning.strategies.strategy", lightning.install),
    ("deepspeed.runtime.engine", deepspeed.install),
    *((name, frameworks.install) for name in frameworks.CALLS),
]

_installed = False


def install(*, note: Callable[[str], None] | None = None) -> None:
    """Install every hook, once a process. `note(status)` tells the card how far this interpreter
    came.
    """
    global _installed
    if _installed:
        return
    _installed = True
    if note is not None:
        _session.set_note(note)
        note("1")
    _native.set_callbacks(
        open=_session.open_segment,
        classify=modules.classify,
        rearm=distributed.rearm,
        watch_zero_grad=optimizer.watch_zero_grad,
        loader_number=dataloader.loader_number,
        epoch_begins=dataloader.epoch_begins,
        epoch_ended=dataloader.epoch_ended,
        group_number=distributed.group_number,
    )
    for name, hook in _HOOKS:
        after_import(name, hook)
    gc.callbacks.append(_native.collected)
    os.register_at_fork(after_in_child=_native.after_fork)
