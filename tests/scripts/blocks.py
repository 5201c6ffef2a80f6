"""As steps.py with trace_step, where a step is a block: `blocks.py NAME...`.

A step lasts from the exit of the previous block to the exit of this one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import common
import steps
import stepscope
import torch
from common import Meter, sleep
from steps import Trainer, loader
from stepscope import trace_step

LOOPS: dict[str, Callable[[Meter], Any]] = {}


def loop(function: Callable[[Meter], Any]) -> Callable[[Meter], Any]:
    LOOPS[function.__name__] = function
    return function


def fetches(meter: Meter, batches: Any) -> Any:
    """As meter.batches, without closing steps: here the block does."""
    with meter("input"):
        iterator = iter(batches)
    while True:
        with meter("input"):
            batch = next(iterator, None)
        if batch is None:
            return
        yield batch


@loop
def plain(meter: Meter) -> None:
    train = Trainer(meter)
    for x, y in fetches(meter, loader(6)):
        sleep(1)
        with trace_step(train.model):
            train(x, y)
        meter.close()


@loop
def work_between_blocks(meter: Meter) -> None:
    train = Trainer(meter)
    for x, y in fetches(meter, loader(6)):
        with trace_step(train.model):
            train(x, y)
        meter.close()
        sleep(3)


@loop
def accumulation_inside(meter: Meter) -> None:
    """Four micro-batches are fetched and trained on in one block."""
    train = Trainer(meter)
    batches = fetches(meter, loader(16))
    for _ in range(4):
        with trace_step(train.model):
            for _ in range(4):
                train.gradients(*next(batches))
            train.update()
        meter.close()


@loop
def block_each_micro_batch(meter: Meter) -> None:
    """One block is one step, even where the optimizer does not step in it."""
    train = Trainer(meter)
    for i, (x, y) in enumerate(fetches(meter, loader(8))):
        with trace_step(train.model):
            train.gradients(x, y)
            if i % 4 == 3:
                train.update()
            meter.stepped()
        meter.close()


@loop
def nested(meter: Meter) -> None:
    """An inner block is ignored."""
    train = Trainer(meter)
    for x, y in fetches(meter, loader(4)):
        with trace_step(train.model):
            with trace_step(train.model):
                train.gradients(x, y)
            train.update()
        meter.close()


@loop
def left_by_an_exception(meter: Meter) -> list[int]:
    train = Trainer(meter)
    failed: list[int] = []
    for i, (x, y) in enumerate(fetches(meter, loader(6))):
        try:
            with trace_step(train.model):
                if i % 3 == 1:
                    failed.append(common.now())
                    raise ValueError("a user's own")
                train(x, y)
        except ValueError as error:
            assert str(error) == "a user's own"
            meter._open = {"begin": common.now(), "anchor": None, "phases": {}}
            continue
        meter.close()
    return failed


@loop
def without_loader_and_model(meter: Meter) -> None:
    """No module, no loader, no optimizer: what the block holds is all there is."""
    weight = torch.zeros(8, 2, requires_grad=True)
    for _ in range(6):
        with trace_step():
            with meter("input"), stepscope.phase("input"):
                sleep(2)
            with meter("forward"):
                loss = common.loss_of(torch.ones(2, 8) @ weight, torch.tensor([0, 1]))
            with meter("backward"):
                loss.backward()
            meter.stepped()
        meter.close()


@loop
def held_manager(meter: Meter) -> None:
    """One context manager, kept and entered again and again."""
    train = Trainer(meter)
    block = trace_step(train.model)
    for x, y in fetches(meter, loader(4)):
        with block:
            train(x, y)
        meter.close()


@loop
def validation(meter: Meter) -> None:
    train, batches, held_out = Trainer(meter), loader(3), loader(3)
    for _ in range(3):
        train.model.train()
        for x, y in fetches(meter, batches):
            with trace_step(train.model):
                train(x, y)
            meter.close()
        with meter("validation"):
            train.model.eval()
            with torch.no_grad():
                for x, y in held_out:
                    common.loss_of(train.model(x), y)


@loop
def paused(meter: Meter) -> None:
    """Steps 3 and 4 of 8 are not recorded."""
    train = Trainer(meter)
    for i, (x, y) in enumerate(fetches(meter, loader(8))):
        if i == 3:
            stepscope.pause()
        with trace_step(train.model):
            train(x, y)
        if i == 4:
            stepscope.resume()
        meter.close()
    del meter.steps[3:5]


def main() -> None:
    found = {}
    for name in sys.argv[1:] or list(LOOPS):
        torch.manual_seed(0)
        meter = Meter()
        failed = LOOPS[name](meter)
        meter.close()
        found[name] = {"steps": meter.steps, "failed": failed or []}
    common.write_measured(loops=found, batch=steps.BATCH)


if __name__ == "__main__":
    main()
