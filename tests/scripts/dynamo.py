"""What Dynamo counts in each way to compile: with and without stepscope it must be equal.

Each case runs in a forked child of a process that has only imported torch, so none sees what
another compiled; a case of two ranks in two children, of which the first tells.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import common
import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch._dynamo.backends.debugging import aot_eager
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

STEPS = 6
graphs: list[int] = []
CASES: dict[str, tuple[Callable[[], Any], int]] = {}


def case(ranks: int = 0) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def keep(function: Callable[[], Any]) -> Callable[[], Any]:
        CASES[function.__name__] = function, ranks
        return function

    return keep


def counting(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
    graphs.append(len(list(module.graph.nodes)))
    return aot_eager(module, inputs)


def compiled(what: Any, **options: Any) -> Any:
    return torch.compile(what, backend=counting, **options)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(torch.relu(self.linear(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batches(steps: int = STEPS) -> DataLoader:
    return DataLoader(
        TensorDataset(torch.randn(4 * steps, 8), torch.arange(4 * steps) % 2), batch_size=4
    )


def train(
    model: Any, parameters: Any = None, *, loss_of: Any = None, steps: int = STEPS
) -> list[str]:
    optimizer = torch.optim.AdamW(model.parameters() if parameters is None else parameters, lr=0.01)
    losses = []
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss = common.loss_of(model(x), y) if loss_of is None else loss_of(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


@case()
def compiled_first() -> Any:
    return train(compiled(Net()))


@case()
def compiled_after_the_optimizer() -> Any:
    model = Net()
    parameters = list(model.parameters())
    return train(compiled(model), parameters)


@case()
def compiled_in_mid_run() -> Any:
    model = Net()
    losses = train(model, steps=3)
    return losses + train(compiled(model))


@case()
def sequential() -> Any:
    return train(
        compiled(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2))))
    )


@case()
def compiled_in_place() -> Any:
    model = Net()
    model.compile(backend=counting)
    return train(model)


@case()
def compiled_in_place_in_mid_run() -> Any:
    model = Net()
    losses = train(model, steps=3)
    model.compile(backend=counting)
    return losses + train(model)


@case()
def each_block() -> Any:
    model = Net()
    for i, block in enumerate(model.blocks):
        model.blocks[i] = compiled(block)
    return train(model)


class Checkpointed(Net):
    """Each block's forward is computed again in backward."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()  # the reentrant kind wants one that has gradients
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


@case()
def checkpointed() -> Any:
    return train(Checkpointed(reentrant=False)) + train(Checkpointed(reentrant=True))


@case()
def checkpointed_inside() -> Any:
    return train(compiled(Checkpointed(reentrant=False)))


@case()
def checkpointed_blocks() -> Any:
    losses = []
    for reentrant in (False, True):
        model = Checkpointed(reentrant=reentrant)
        for i, block in enumerate(model.blocks):
            model.blocks[i] = compiled(block)
        losses += train(model)
    return losses


@case()
def inside_out() -> Any:
    """The inner module is compiled first, the whole one later."""
    model = Net()
    losses = train(model, steps=2)
    model.blocks[0].compile(backend=counting)
    losses += train(model, steps=3)
    return losses + train(compiled(model), steps=3)


@case()
def function_that_calls_the_model() -> Any:
    model = Net()

    @compiled
    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return common.loss_of(model(x), y)

    return train(model, loss_of=loss_of)


@case()
def whole_step() -> Any:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True)

    @compiled
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = common.loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return [step(x, y).item().hex() for x, y in batches()]


@case()
def optimizer_step() -> Any:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = compiled(lambda: optimizer.step())
    losses = []
    for x, y in batches():
        optimizer.zero_grad()
        loss = common.loss_of(model(x), y)
        loss.backward()
        step()
        losses.append(loss.item().hex())
    return losses


@case()
def changes_mode_inside() -> Any:
    model = Net()

    @compiled
    def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        model.train()
        loss = common.loss_of(model(x), y)
        model.eval()
        return loss + model(x).sum() * 0

    return train(model, loss_of=both)


@case()
def with_trace_step() -> Any:
    """A block around each call of a compiled model; without stepscope, an empty one."""
    try:
        from stepscope import trace_step
    except ImportError:
        import contextlib

        trace_step = contextlib.nullcontext
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    fast = compiled(model)
    losses = []
    for x, y in batches():
        with trace_step(fast):
            loss = common.loss_of(fast(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item().hex())
    return losses


@case()
def to_device_inside() -> Any:
    model = Net()

    @compiled
    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return common.loss_of(model(x.to("cpu").to(torch.float32)), y)

    return train(model, loss_of=loss_of)


@case()
def validated_between() -> Any:
    model = compiled(Net())
    losses = train(model, steps=3)
    model.eval()
    with torch.no_grad():
        for x, _ in batches():
            losses.append(model(x).sum().item().hex())
    model.train()
    return losses + train(model, steps=3)


@case()
def another_shape() -> Any:
    model = compiled(Net())
    losses = train(model)
    losses.append(model(torch.ones(7, 8)).sum().item().hex())
    losses.append(model(torch.ones(9, 8)).sum().item().hex())
    return losses


def ddp_of_compiled() -> Any:
    return train(DistributedDataParallel(compiled(Net())))


def compiled_ddp() -> Any:
    return train(compiled(DistributedDataParallel(Net())))


def ddp_compiled_in_place() -> Any:
    model = Net()
    model.compile(backend=counting)
    return train(DistributedDataParallel(model))


for ranks in (1, 2):
    for function in (ddp_of_compiled, compiled_ddp, ddp_compiled_in_place):
        CASES[f"{function.__name__}_{ranks}"] = function, ranks


def is_observed() -> bool:
    """Whether this process has a segment: without one the case would prove nothing."""
    folder = os.environ.get("STEPSCOPE_SEGMENTS")
    return folder is not None and any(f"seg-{os.getpid()}-" in name for name in os.listdir(folder))


def run(name: str, rank: int, folder: str) -> None:
    function, ranks = CASES[name]
    torch.manual_seed(3)
    if ranks:
        store = dist.FileStore(os.path.join(folder, name), ranks)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    losses = function()
    counters = {group: dict(counts) for group, counts in torch._dynamo.utils.counters.items()}
    told = {
        "losses": losses,
        "graphs": graphs,
        "counters": {
            g: counters.get(g, {})
            for g in ("stats", "frames", "graph_break", "recompiles", "unimplemented")
        },
        "observed": is_observed(),
    }
    if rank == 0:
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)
    if ranks:
        dist.barrier()
        dist.destroy_process_group()


def child(name: str, rank: int, folder: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        run(name, rank, folder)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    import traceback

    sys.excepthook = lambda *error: traceback.print_exception(*error)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or list(CASES):
            pids = [child(name, rank, folder) for rank in range(max(1, CASES[name][1]))]
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
            told = os.path.join(folder, f"{name}.json")
            found[name] = {"codes": codes}
            if os.path.exists(told):
                with open(told, encoding="utf-8") as file:
                    found[name] |= json.load(file)
    common.write_measured(cases=found)


if __name__ == "__main__":
    main()
