"""Loops of several ranks, one after the other: `ranks.py [--steps N] [--spawn RANKS] NAME...`.

In each, one rank loses LOST ms somewhere in every step; each rank measures what it lost itself and
writes it, with an instant inside every step, to $MEASURED.<rank>.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable
from typing import Any

import common
import torch
import torch.distributed as dist
from common import Meter, SlowData, SlowNet, leave, loss_of, sleep
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

LOST = 40.0
LOOPS: dict[str, Callable[[Meter, int, int], Any]] = {}
BATCH = 2


def loop(function: Callable[[Meter, int, int], Any]) -> Callable[[Meter, int, int], Any]:
    LOOPS[function.__name__] = function
    return function


def plain(
    meter: Meter,
    rank: int,
    steps: int,
    *,
    slow: int,
    input_ms: float = 0.0,
    between_ms: float = 0.0,
    accumulate: int = 1,
    no_sync: bool = False,
    wrap: Callable[[nn.Module], nn.Module] = DistributedDataParallel,
    make: Callable[..., nn.Module] = SlowNet,
    **model_options: Any,
) -> None:
    """The slow rank loses the given ms, the others none."""
    here = float(rank == slow)
    model = wrap(
        make(**{k: v * here if k.endswith("_ms") else v for k, v in model_options.items()})
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = SlowData(steps * accumulate * BATCH, ms=here * input_ms / BATCH)
    for i, (x, y) in enumerate(meter.batches(DataLoader(data, batch_size=BATCH))):
        last = i % accumulate == accumulate - 1
        with model.no_sync() if no_sync and not last else contextlib.nullcontext():
            with meter("forward"):
                loss = loss_of(model(x), y)
            with meter("backward"):
                loss.backward()
        if last:
            with meter("optimizer"):
                optimizer.step()
            meter.stepped()
            optimizer.zero_grad()
            with meter("lost_between"):
                sleep(here * between_ms)


@loop
def input(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, input_ms=LOST)


@loop
def forward(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, forward_ms=LOST)


@loop
def backward(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, backward_ms=LOST)


@loop
def between(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, between_ms=LOST)


@loop
def forward_of_rank_0_with_buffers(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=0, forward_ms=LOST, batch_norm=True)


@loop
def input_of_rank_0_with_buffers(meter: Meter, rank: int, steps: int) -> None:
    """The other waits for the buffers of rank 0, inside its forward."""
    plain(meter, rank, steps, slow=0, input_ms=LOST, batch_norm=True)


@loop
def input_with_buffers(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, input_ms=LOST, batch_norm=True)


@loop
def accumulation_that_syncs_each_time(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, forward_ms=LOST / 4, accumulate=4)


@loop
def accumulation_without_sync(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, forward_ms=LOST / 4, accumulate=4, no_sync=True)


class HalfUsed(SlowNet):
    """Has parameters that no forward uses, the first of all among them."""

    def __init__(self, **options: Any) -> None:
        nn.Module.__init__(self)
        self.unused = nn.Linear(8, 8)
        rest = SlowNet(**options)
        self.forward_ms, self.backward_ms = rest.forward_ms, rest.backward_ms
        self.first, self.norm, self.last = rest.first, rest.norm, rest.last
        self.also_unused = nn.Linear(8, 8)


@loop
def backward_with_unused_parameters(meter: Meter, rank: int, steps: int) -> None:
    def wrap(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(model, find_unused_parameters=True)

    plain(meter, rank, steps, slow=1, backward_ms=LOST, wrap=wrap, make=HalfUsed)


@loop
def backward_with_static_graph(meter: Meter, rank: int, steps: int) -> None:
    def wrap(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(model, static_graph=True, gradient_as_bucket_view=True)

    plain(meter, rank, steps, slow=1, backward_ms=LOST, wrap=wrap)


@loop
def input_compiled_inside(meter: Meter, rank: int, steps: int) -> None:
    def wrap(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(torch.compile(model, backend="aot_eager"))

    plain(meter, rank, steps, slow=1, input_ms=LOST, wrap=wrap)


@loop
def input_compiled_outside(meter: Meter, rank: int, steps: int) -> None:
    def wrap(model: nn.Module) -> nn.Module:
        return torch.compile(DistributedDataParallel(model), backend="aot_eager")

    plain(meter, rank, steps, slow=1, input_ms=LOST, wrap=wrap)


class Deep(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.before = nn.Linear(8, 8)
        self.net = SlowNet(**options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(torch.relu(self.before(x)))


def shard(model: nn.Module) -> nn.Module:
    from torch.distributed.fsdp import fully_shard

    for layer in (model.before, model.net):  # type: ignore[attr-defined]
        fully_shard(layer)
    return fully_shard(model)


@loop
def forward_under_fsdp(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, forward_ms=LOST, wrap=shard, make=Deep)


@loop
def backward_under_fsdp(meter: Meter, rank: int, steps: int) -> None:
    plain(meter, rank, steps, slow=1, backward_ms=LOST, wrap=shard, make=Deep)


@loop
def own_all_reduce(meter: Meter, rank: int, steps: int) -> None:
    """No wrapper: gradients are averaged by hand, the metric asynchronously, and each step ends
    with a barrier.
    """
    model = SlowNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in meter.batches(DataLoader(SlowData(steps * BATCH), batch_size=BATCH)):
        with meter("forward"):
            loss = loss_of(model(x), y)
        with meter("backward"):
            loss.backward()
        with meter("lost_between"):
            sleep(LOST / 2 * rank)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        with meter("optimizer"):
            optimizer.step()
        metric = loss.detach().clone()
        work = dist.all_reduce(metric, async_op=True)
        assert work is not None
        work.wait()
        with meter("lost_between"):
            sleep(LOST / 2 * rank)
        dist.barrier()
        meter.stepped()


def run(rank: int, ranks: int, names: list[str], steps: int, file: str | None = None) -> None:
    torch.set_num_threads(1)
    if file is None:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
    rank = dist.get_rank()
    found = {}
    for name in names:
        torch.manual_seed(0)
        dist.barrier()
        meter = Meter()
        LOOPS[name](meter, rank, steps)
        meter.close()
        found[name] = meter.steps
    os.environ["MEASURED"] += f".{rank}"
    common.write_measured(loops=found, lost_ms=LOST, pid=os.getpid())
    leave()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--spawn", type=int, default=0)
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    names = given.names or list(LOOPS)
    if given.spawn:
        file = os.environ["MEASURED"] + ".store"
        torch.multiprocessing.spawn(run, (given.spawn, names, given.steps, file), given.spawn)  # type: ignore[attr-defined]
    else:
        run(0, 1, names, given.steps)


if __name__ == "__main__":
    main()
