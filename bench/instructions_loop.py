"""What bench/instructions.py counts: training-shaped calls without torch, `hooked` or plain, N
steps.

Every hook of a typical step is called the way torch calls it; what they wrap does nothing. So the
difference between the two ways, and between two numbers of steps, is the hooks and the recorder
alone.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from typing import Any


class Tensor:
    shape = (32, 8)


class Module:
    training = True

    def __call__(self, x: Tensor) -> Tensor:
        return x


class Loader:
    def __iter__(self) -> Iterator_:
        return Iterator_(self)


class Iterator_:
    def __init__(self, loader: Loader) -> None:
        self.batch = (Tensor(), Tensor())

    def __next__(self) -> tuple[Tensor, Tensor]:
        return self.batch


def run_backward(*tensors: Tensor) -> None:
    return None


def hook(folder: str) -> None:
    from stepscope import _native

    def open_segment() -> bool:
        # Room for every event: a full ring would make the way of a write shorter than it is.
        _native.open_segment(
            folder=folder,
            segment_bytes=4 << 20,
            shm_share=1.0,
            rank=0,
            local_rank=0,
            world_size=1,
            local_world_size=1,
            node_rank=-1,
            attempt=0,
            run_id="",
            python_version="",
            torch_version="",
            executable="",
        )
        return True

    _native.set_callbacks(
        open=open_segment,
        classify=lambda module: True,
        rearm=lambda: None,
        watch_zero_grad=lambda: None,
        loader_number=lambda loader: 1,
        epoch_begins=lambda loader: 1,
        epoch_ended=lambda number: None,
        group_number=lambda group: 0,
    )
    # gc.isenabled is a builtin without arguments that returns True, like torch.is_grad_enabled.
    _native.set_torch(
        is_grad_enabled=gc.isenabled,
        tensor_type=Tensor,
        disable_torch_function=None,
        queue_callback=None,
    )
    kinds = _native.Hook
    wrapped: Any = Iterator_
    wrapped.__init__ = _native.timed_call(wrapped.__init__, kinds.ITER_INIT)
    wrapped.__next__ = _native.timed_call(wrapped.__next__, kinds.FETCH)
    loader: Any = Loader
    loader.__iter__ = _native.timed_call(loader.__iter__, kinds.ITER)
    globals()["run_backward"] = _native.timed_call(run_backward, kinds.BACKWARD)
    globals()["before_step"], globals()["after_step"] = (
        _native.optimizer_begin,
        _native.optimizer_end,
    )
    globals()["zeroed"] = _native.zero_grad
    _native.set_module_type(Module)
    _native.watch_all_classes()


def before_step(optimizer: object, args: object, kwargs: object) -> None: ...


def after_step(optimizer: object, args: object, kwargs: object) -> None: ...


def zeroed() -> None: ...


def main() -> None:
    hooked, steps = sys.argv[1] == "hooked", int(sys.argv[2])
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="stepscope-bench-") as folder:
        if hooked:
            hook(folder)
        model, optimizer, source, x = Module(), object(), iter(Loader()), Tensor()
        for _ in range(steps):
            next(source)
            zeroed()
            model(x)
            run_backward(x)
            before_step(optimizer, (), {})
            after_step(optimizer, (), {})
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))


if __name__ == "__main__":
    main()
