"""Loops whose model is compiled, by a backend that takes its time: `compiled.py NAME...`, as
steps.py.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import common
import torch
from common import Meter, SlowData, loss_of, sleep
from torch import nn
from torch._dynamo.backends.debugging import aot_eager
from torch.utils.data import DataLoader

COMPILE_MS = 60.0
sizes = itertools.count(
    2040, 8
)  # each model its own width: else Dynamo takes what it compiled for another
LOOPS: dict[str, Callable[[Meter], Any]] = {}


def loop(function: Callable[[Meter], Any]) -> Callable[[Meter], Any]:
    LOOPS[function.__name__] = function
    return function


def slow_backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
    sleep(COMPILE_MS)
    return aot_eager(module, inputs)


def compiled(what: Any) -> Any:
    return torch.compile(what, backend=slow_backend)


class Net(nn.Module):
    """Wide enough that its forward and its backward take milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        width = next(sizes)
        self.first = nn.Linear(8, width)
        self.middle = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.last = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.middle(self.first(x)))


def loader(steps: int) -> DataLoader:
    return DataLoader(SlowData(16 * steps), batch_size=16)


def train(meter: Meter, model: Any, parameters: Any, steps: int = 6, loss: Any = None) -> None:
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for x, y in meter.batches(loader(steps)):
        with meter("forward"):
            value = loss_of(model(x), y) if loss is None else loss(x, y)
        with meter("backward"):
            value.backward()
        with meter("optimizer"):
            optimizer.step()
        meter.stepped()
        optimizer.zero_grad()


@loop
def compiled_first(meter: Meter) -> None:
    model = Net()
    train(meter, compiled(model), model.parameters())


@loop
def compiled_in_mid_run(meter: Meter) -> None:
    model = Net()
    train(meter, model, model.parameters(), 3)
    train(meter, compiled(model), model.parameters())


@loop
def compiled_in_place(meter: Meter) -> None:
    model = Net()
    model.compile(backend=slow_backend)
    train(meter, model, model.parameters())


@loop
def each_block(meter: Meter) -> None:
    model = Net()
    model.middle = compiled(model.middle)
    train(meter, model, model.parameters())


@loop
def function_that_calls_the_model(meter: Meter) -> None:
    model = Net()
    train(meter, None, model.parameters(), loss=compiled(lambda x, y: loss_of(model(x), y)))


@loop
def whole_step(meter: Meter) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @compiled
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        value = loss_of(model(x), y)
        value.backward()
        optimizer.step()
        return value

    for x, y in meter.batches(loader(44)):
        step(x, y)
        meter.stepped()


def main() -> None:
    found = {}
    for name in sys.argv[1:] or list(LOOPS):
        torch.manual_seed(0)
        meter = Meter()
        LOOPS[name](meter)
        meter.close()
        found[name] = {"steps": meter.steps, "failed": []}
    common.write_measured(loops=found, compile_ms=COMPILE_MS)


if __name__ == "__main__":
    main()
