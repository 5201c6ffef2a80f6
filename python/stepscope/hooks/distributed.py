"""ready and sync: when this rank's own work is done, and what it waits for other ranks.

ProcessGroup's methods and Work.wait are patched where they are defined, not in torch.distributed:
an early `from torch.distributed import all_reduce` is seen, and compiled collectives stay whole
(`trials.md` E).
"""

from __future__ import annotations

import hashlib
import os
import weakref
from types import ModuleType
from typing import Any

from stepscope import _native, _session
from stepscope.hooks import tensors

# End together, so they tell who came late.
_COLLECTIVES = (
    "allreduce",
    "allreduce_coalesced",
    "allgather",
    "all_gather_single",
    "allgather_coalesced",
    "all_gather_single_coalesced",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "alltoall",
    "all_to_all_single",
    "barrier",
)

_MAX_TRIES = 64  # parameters tried for the ready hook before it is given up
_ddp: Any = None  # weak reference to the DistributedDataParallel whose backward is watched
_parameter_at = 0
_handle: Any = None


def install(module: ModuleType) -> None:
    c10d: Any = getattr(__import__("torch")._C, "_distributed_c10d", None)
    if c10d is None:
        return
    group = c10d.ProcessGroup
    for name in _COLLECTIVES:
        method = group.__dict__.get(name)
        if method is not None:
            function = getattr(method, "__func__", method)
            setattr(group, name, _native.timed_call(function, _native.Hook.ISSUE))
    wait = c10d.Work.__dict__["wait"]
    c10d.Work.wait = _native.timed_call(getattr(wait, "__func__", wait), _native.Hook.WAIT)


def install_ddp(module: ModuleType) -> None:
    ddp: Any = module.DistributedDataParallel
    ddp._sync_buffers = _native.timed_call(ddp._sync_buffers, _native.Hook.SYNC)


def group_number(group: Any) -> int:
    """The number of a process group in this process's segment, 0 where ranks cannot wait in it.

    Its id is the same on every member: torch gives groups their names in the order in which all
    ranks make them. A restarted job begins to count again, so the attempt is part of it.
    """
    import torch

    ranks = sorted(torch.distributed.get_process_group_ranks(group))
    if len(ranks) < 2:
        return 0
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    text = f"{attempt}/{group.group_name}/{ranks}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    weakref.finalize(group, _native.forget_group, id(group)).atexit = False
    return _native.add_group(int.from_bytes(digest, "little") or 1, len(ranks))


def saw_root(module: Any) -> None:
    """Look at a new root: DDP or FSDP inside it, and how many ranks there are by now."""
    world_size = _session.tell_ranks()
    for child in module.modules():
        names = {cls.__name__ for cls in type(child).__mro__}
        if "DistributedDataParallel" in names:
            _native.set_fact(_native.FACT_DDP)
            if world_size > 1:
                _arm(child)
            return
        if names & {"FSDPModule", "FullyShardedDataParallel"}:
            _native.set_fact(_native.FACT_FSDP)
            return


def _arm(ddp: Any) -> None:
    global _ddp, _parameter_at
    _ddp = weakref.ref(ddp)
    _parameter_at = 0
    _native.set_reducer_owner(_ddp, ddp.process_group)
    rearm()


def rearm() -> None:
    """Hook the next parameter: the last one had no gradient in the backward just done."""
    global _handle, _parameter_at
    if _handle is not None:
        _handle.remove()
        _handle = None
    ddp = _ddp() if _ddp is not None else None
    if ddp is None or _parameter_at >= _MAX_TRIES or _compiled_autograd():
        return
    with tensors.quietly():
        parameters = [parameter for parameter in ddp.parameters() if parameter.requires_grad]
        parameter = parameters[_parameter_at % len(parameters)]
        _parameter_at += 1
        _handle = parameter.register_post_accumulate_grad_hook(_native.gradient_accumulated)


def _compiled_autograd() -> bool:
    """There a hook adds graph breaks (`trials.md` C): ready is not measured instead."""
    import sys

    config: Any = sys.modules.get("torch._dynamo.config")
    return bool(config is not None and config.compiled_autograd)
