"""What the observed training scripts share: a clock, slow parts, small models.

Nothing here knows of stepscope: a script measures itself with time.perf_counter_ns, which on Linux
is the clock of the records too (CLOCK_MONOTONIC), and writes what it found to the JSON file that
$MEASURED names.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

now = time.perf_counter_ns


class Meter:
    """Times of one loop, as the loop itself sees them.

    `with meter("forward"):` adds to a phase of the step in progress; meter.batches(loader) fetches
    and closes steps where one ends: before the first fetch after an optimizer step. meter.close()
    closes one by hand, meter.stepped() tells that the optimizer has stepped. A step is a dict:
    begin, end, anchor (an instant inside it, after its last optimizer step), phases {name: ns}.
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        self._stack: list[tuple[str, int]] = []

    def __call__(self, phase: str) -> Meter:
        self._stack.append((phase, now()))
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        end = now()
        phase, begin = self._stack.pop()
        if self._open is None:
            self._open = {"begin": begin, "anchor": None, "phases": {}}
        phases = self._open["phases"]
        phases[phase] = phases.get(phase, 0) + end - begin
        if self._stack:  # exclusive: what is inside is not the outer one's
            outer, outer_begin = self._stack[-1]
            self._stack[-1] = (outer, outer_begin + end - begin)

    def stepped(self) -> None:
        if self._open is None:
            self._open = {"begin": now(), "anchor": None, "phases": {}}
        self._open["anchor"] = now()

    def close(self) -> None:
        """The step ends here, if the optimizer has stepped in it; else it goes on."""
        if self._open is None or self._open["anchor"] is None:
            return
        end = now()
        self.steps.append({**self._open, "end": end})
        self._open = {"begin": end, "anchor": None, "phases": {}}

    def batches(self, loader: Any) -> Iterator[Any]:
        if self._open is None:
            self._open = {"begin": now(), "anchor": None, "phases": {}}
        with self("input"):
            iterator = iter(loader)
        while True:
            self.close()
            with self("input"):
                batch = next(iterator, None)
            if batch is None:
                return
            yield batch


def write_measured(**values: Any) -> None:
    with open(os.environ["MEASURED"], "w", encoding="utf-8") as file:
        json.dump(values, file)


def sleep(ms: float) -> None:
    if ms > 0:
        time.sleep(ms / 1e3)


def work(ms: float) -> None:
    """The same with the CPU busy."""
    end = now() + ms * 1e6
    while now() < end:
        pass


class SlowData(Dataset):
    """`length` samples of (features, label); each costs `ms` to get."""

    def __init__(self, length: int, *, ms: float = 0.0, features: int = 8) -> None:
        self.length, self.ms, self.features = length, ms, features

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        sleep(self.ms)
        return torch.full((self.features,), float(index % 7)), torch.tensor(index % 2)


class _SlowInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ms: float) -> torch.Tensor:
        ctx.ms = ms
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        sleep(ctx.ms)
        return grad, None


class SlowNet(nn.Module):
    """A small classifier that loses the given ms in each forward and each backward."""

    def __init__(
        self, *, forward_ms: float = 0.0, backward_ms: float = 0.0, batch_norm: bool = False
    ) -> None:
        super().__init__()
        self.forward_ms, self.backward_ms = forward_ms, backward_ms
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16) if batch_norm else nn.Identity()
        self.last = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sleep(self.forward_ms)
        x = _SlowInBackward.apply(self.first(x), self.backward_ms)
        return self.last(torch.relu(self.norm(x)))


class SlowSGD(torch.optim.SGD):
    """SGD whose step costs `slow_ms` more."""

    slow_ms = 0.0

    def step(self, closure: Any = None) -> Any:
        sleep(self.slow_ms)
        return super().step(closure)


class SlowToPickle:
    """Costs `ms` when it is saved."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __reduce__(self) -> tuple[Any, ...]:
        sleep(self.ms)
        return (SlowToPickle, (self.ms,))


def train(model: nn.Module, loader: Any) -> None:
    """An epoch with SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        loss_of(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def leave() -> None:
    """Ends the process group. gloo aborts now and then, also without stepscope, when that comes
    while its own thread is still busy with the barrier.
    """
    import torch.distributed as dist

    dist.barrier()
    sleep(200)
    dist.destroy_process_group()


loss_of = nn.functional.cross_entropy
