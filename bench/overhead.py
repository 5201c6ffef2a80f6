"""Cost of the hooks in the training process, per step: hooks on against off, and off against off.

All three arms run interleaved in one process, in blocks of a few steps, on the same model, loader
and optimizer, so that the noise of a shared machine meets all alike. "Off" is torch as it was
before the hooks: every patched attribute is put back, the module slots are reset, the optimizer
hooks and the gc callback are taken out.

    ./dev bench overhead [--json] [--modules N] [--rounds N] [--ddp]

Prints added_us (on - off) and null_us (off - off): the median over all rounds of the difference
within a round.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

BLOCK = 25


def build(modules: int, ddp: bool) -> Callable[[], None]:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    width, hidden = (64, (modules - 1) // 2) if modules > 20 else (160, (modules - 1) // 2)
    if modules > 20:
        width = 16
    layers: list[nn.Module] = []
    for _ in range(hidden):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model: nn.Module = nn.Sequential(*layers)
    if ddp:
        torch.distributed.init_process_group(
            "gloo", rank=0, world_size=1, init_method="tcp://127.0.0.1:0"
        )
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(4096, width), torch.randn(4096, width))
    loader = DataLoader(data, batch_size=32, shuffle=False)

    def batches() -> Iterator:
        while True:
            yield from loader

    source = batches()

    def step() -> None:
        x, y = next(source)
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()

    return step


class Switch:
    """Everything that the hooks changed, as (where, name, before, after)."""

    def __init__(self) -> None:
        import torch
        import torch.utils.data.dataloader as dataloader
        from torch.optim import optimizer as optim

        self.places = [
            (dataloader._BaseDataLoaderIter, "__init__"),
            (dataloader._BaseDataLoaderIter, "__next__"),
            (dataloader.DataLoader, "__iter__"),
            (torch.autograd, "_engine_run_backward"),
            (torch.nn.Module, "train"),
            (optim.Optimizer, "zero_grad"),
            (torch._C._distributed_c10d.Work, "wait"),
        ]
        self.optim = optim
        self.module = torch.nn.Module
        self.off_values = [
            vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
            for owner, name in self.places
        ]

    def installed(self) -> None:
        self.on_values = [
            vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
            for owner, name in self.places
        ]
        self.pre = dict(self.optim._global_optimizer_pre_hooks)
        self.post = dict(self.optim._global_optimizer_post_hooks)
        self.gc = list(gc.callbacks)

    def on(self) -> None:
        from stepscope.hooks import modules

        for (owner, name), value in zip(self.places, self.on_values, strict=True):
            setattr(owner, name, value)
        self.optim._global_optimizer_pre_hooks.update(self.pre)
        self.optim._global_optimizer_post_hooks.update(self.post)
        gc.callbacks[:] = self.gc
        modules.install_slots()

    def off(self) -> None:
        for (owner, name), value in zip(self.places, self.off_values, strict=True):
            setattr(owner, name, value)
        self.optim._global_optimizer_pre_hooks.clear()
        self.optim._global_optimizer_post_hooks.clear()
        gc.callbacks.clear()
        self.module.__call__ = (
            self.module.__call__
        )  # CPython resets the tp_call slot of every subclass


def quick(times: list[int]) -> float:
    """The 30th percentile of a block: below the median, where the machine's other work shows."""
    return sorted(times)[int(0.3 * len(times))]


def measure(
    step: Callable[[], None], switch: Switch, agent: Agent, rounds: int
) -> dict[str, float]:
    """Each round has one block of each arm in random order; what counts is the difference within a
    round.
    """
    arms = {"on": switch.on, "off": switch.off, "off_again": switch.off}
    blocks: dict[str, list[float]] = {name: [] for name in arms}
    clock = time.perf_counter_ns
    order = list(arms)
    chooser = random.Random(0)
    for _ in range(rounds):
        chooser.shuffle(order)
        for name in order:
            arms[name]()
            agent.drain()
            step()  # the first steps after a switch meet cold caches: not counted
            step()
            times = []
            for _ in range(BLOCK):
                begin = clock()
                step()
                times.append(clock() - begin)
            blocks[name].append(quick(times))
    rows = list(zip(blocks["on"], blocks["off"], blocks["off_again"], strict=True))
    off = statistics.median((first + second) / 2 for _, first, second in rows)
    added = statistics.median(on - (first + second) / 2 for on, first, second in rows)
    null = statistics.median(first - second for _, first, second in rows)
    return {
        "added_us": round(added / 1000, 3),
        "null_us": round(null / 1000, 3),
        "step_us": round(off / 1000, 1),
        "ratio": round((off + added) / off, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--modules", type=int, default=13)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--ddp", action="store_true")
    options = parser.parse_args()
    folder = Path("/dev/shm") / f"stepscope-bench-{os.getpid()}"
    folder.mkdir(mode=0o700)
    os.environ["STEPSCOPE_SEGMENTS"] = str(folder)
    os.environ.pop("STEPSCOPE", None)
    try:
        step = build(options.modules, options.ddp)
        for _ in range(20):
            step()
        switch = Switch()
        from stepscope import _install, _native

        _install.install()
        switch.installed()
        switch.on()
        for _ in range(50):
            step()
        if not _native.is_recording():
            sys.exit("stepscope: the bench could not open a segment")
        agent = Agent(folder)
        result = measure(step, switch, agent, options.rounds)
        result["modules"] = options.modules
        result["records"], result["records_dropped"] = agent.records()
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    if options.json:
        print(json.dumps(result))
    else:
        print(f"hooks on against off, {result['modules']} modules, step {result['step_us']} us:")
        print(
            f"  added {result['added_us']:+.2f} us a step "
            f"(off against off: {result['null_us']:+.2f} us)"
        )


class Agent:
    """Stands in for the agent between blocks: says that all was drained, so that the ring never
    fills.
    """

    HEAD, DROPPED, TAIL, TAIL_CHECK = 1024, 1032, 1152, 1160  # src/wire/segment_format.h

    def __init__(self, folder: Path) -> None:
        (segment,) = folder.glob("seg-*")
        self.file = os.open(segment, os.O_RDWR)

    def drain(self) -> None:
        head = os.pread(self.file, 8, self.HEAD)
        complement = bytes(byte ^ 0xFF for byte in head)
        os.pwrite(self.file, head, self.TAIL)
        os.pwrite(self.file, complement, self.TAIL_CHECK)

    def records(self) -> tuple[int, int]:
        """Written and dropped so far."""
        head, dropped = (
            int.from_bytes(os.pread(self.file, 8, at), "little") for at in (self.HEAD, self.DROPPED)
        )
        return head, dropped


if __name__ == "__main__":
    main()
