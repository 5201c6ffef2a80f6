"""Cost of the hooks in the training process, per step: hooks on against off, and off against off.

All arms run interleaved in one process, in blocks of a few steps, on the same model, loader
and optimizer, so that the noise of a shared machine meets all alike. "Off" is torch as it was
before the hooks: every patched attribute is put back, the module slots are reset, the optimizer
hooks and the gc callback are taken out.

    ./dev bench overhead [--json] [--rounds N] [--only NAME]

Prints added_us (on - off), paused_us (hooks in place that record nothing - off: what CPython's way
through them costs) and null_us (off - off), the median over all rounds of the difference
within a round, for a model of 13 modules, and the same for one of 400 modules and for 13 modules
under DDP with the ready hook armed (one rank: the hooks' cost does not depend on others). Where
memory happens to lie decides about some microseconds a step, for better or worse, as long as a
process lives: so each figure is the median of nine processes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BLOCK = 25
SETTLE = 10  # steps after a switch: caches, and the slots of classes without a root are taken out
PROCESSES = 9


def build(modules: int, ddp: bool, folder: Path) -> tuple[Callable[[], None], Any]:
    """A step of a training loop, and its model. What makes the large one large does nothing: the
    cost of calling 400 modules with hooks is the same, and can be told from a step of a
    millisecond, but not from one of ten, which varies by more than all that is asked for.
    """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = 160
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Linear(width, width), nn.ReLU()]
        layers += [nn.Identity() for _ in range((modules - 13) // 6)]
    layers += [nn.Identity() for _ in range(modules - 1 - len(layers))]
    model: nn.Module = nn.Sequential(*layers)
    if ddp:
        store = f"file://{folder}/store"
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, init_method=store)
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

    return step, model


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
            (dataloader._utils.fetch._MapDatasetFetcher, "fetch"),
            (dataloader._DatasetKind, "create_fetcher"),
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
        from stepscope.hooks import distributed

        self.on_values = [
            vars(owner)[name] if isinstance(owner, type) else getattr(owner, name)
            for owner, name in self.places
        ]
        self.pre = dict(self.optim._global_optimizer_pre_hooks)
        self.post = dict(self.optim._global_optimizer_post_hooks)
        self.gc = list(gc.callbacks)
        self.handle = distributed._handle
        if self.handle is not None:  # DDP: the hook on one parameter
            self.hooks = self.handle.hooks_dict_ref()
            self.hook = self.hooks[self.handle.id]

    def on(self) -> None:
        from stepscope import _native

        for (owner, name), value in zip(self.places, self.on_values, strict=True):
            setattr(owner, name, value)
        self.optim._global_optimizer_pre_hooks.update(self.pre)
        self.optim._global_optimizer_post_hooks.update(self.post)
        gc.callbacks[:] = self.gc
        _native.watch_all_classes()
        _native.resume()
        if self.handle is not None:
            self.hooks[self.handle.id] = self.hook

    def paused(self) -> None:
        from stepscope import _native

        self.on()
        _native.pause()

    def off(self) -> None:
        for (owner, name), value in zip(self.places, self.off_values, strict=True):
            setattr(owner, name, value)
        self.optim._global_optimizer_pre_hooks.clear()
        self.optim._global_optimizer_post_hooks.clear()
        gc.callbacks.clear()
        if self.handle is not None:
            self.hooks.pop(self.handle.id, None)
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
    arms = {
        "on": switch.on,
        "paused": switch.paused,
        "off": switch.off,
        "off_again": switch.off,
    }
    blocks: dict[str, list[float]] = {name: [] for name in arms}
    clock = time.perf_counter_ns
    order = list(arms)
    chooser = random.Random(0)
    for _ in range(rounds):
        chooser.shuffle(order)
        for name in order:
            arms[name]()
            agent.drain()
            for _ in range(SETTLE):
                step()
            times = []
            for _ in range(BLOCK):
                begin = clock()
                step()
                times.append(clock() - begin)
            blocks[name].append(quick(times))
    offs = list(zip(blocks["off"], blocks["off_again"], strict=True))
    off = statistics.median((first + second) / 2 for first, second in offs)
    null = statistics.median(first - second for first, second in offs)

    def above(name: str) -> float:
        pairs = zip(blocks[name], offs, strict=True)
        return statistics.median(time - (first + second) / 2 for time, (first, second) in pairs)

    added = above("on")
    return {
        "added_us": round(added / 1000, 3),
        "paused_us": round(above("paused") / 1000, 3),
        "null_us": round(null / 1000, 3),
        "step_us": round(off / 1000, 1),
        "ratio": round((off + added) / off, 5),
    }


class Agent:
    """Stands in for the agent between blocks: says that all was drained, so that the ring never
    fills.
    """

    # src/wire/segment_format.h
    CAPACITY, DROPPED, TAIL, TAIL_CHECK, RING, EVENT = 24, 1024, 1088, 1096, 8192, 32

    def __init__(self, folder: Path) -> None:
        (segment,) = folder.glob("seg-*")
        self.file = os.open(segment, os.O_RDWR)
        self.capacity = self.word(self.CAPACITY)

    def word(self, at: int) -> int:
        return int.from_bytes(os.pread(self.file, 8, at), "little")

    def written(self) -> int:
        """Events so far: the number up to which this lap's slots go, found by halving."""
        first = self.word(self.RING)  # 1 + the number of the event in the first slot
        low, high = 0, self.capacity
        while first and low < high:
            middle = (low + high) // 2
            if self.word(self.RING + middle * self.EVENT) == first + middle:
                low = middle + 1
            else:
                high = middle
        return first - 1 + low if first else 0

    def drain(self) -> None:
        tail = self.written()
        os.pwrite(self.file, tail.to_bytes(8, "little"), self.TAIL)
        os.pwrite(self.file, (tail ^ (1 << 64) - 1).to_bytes(8, "little"), self.TAIL_CHECK)

    def events(self) -> tuple[int, int]:
        """Written and dropped so far."""
        return self.written(), self.word(self.DROPPED)


VARIANTS = {"modules_13": (13, False), "modules_400": (400, False), "ddp": (13, True)}


def measure_variant(name: str, rounds: int) -> dict[str, float]:
    """In a process of its own: hooks go in once a process."""
    modules, ddp = VARIANTS[name]
    folder = Path(tempfile.mkdtemp(prefix="stepscope-bench-", dir="/dev/shm"))
    segments = folder / "segments"
    segments.mkdir(mode=0o700)
    os.environ["STEPSCOPE_SEGMENTS"] = str(segments)
    os.environ.pop("STEPSCOPE", None)
    try:
        step, model = build(modules, ddp, folder)
        for _ in range(20):
            step()
        switch = Switch()
        from stepscope import _install, _native
        from stepscope.hooks import distributed

        _install.install()
        if ddp:
            distributed._arm(model)
        switch.installed()
        switch.on()
        for _ in range(50):
            step()
        if not _native.is_recording():
            sys.exit("bench: no segment could be opened in /dev/shm")
        agent = Agent(segments)
        result = measure(step, switch, agent, rounds)
        result["events"], result["events_dropped"] = agent.events()
        return result
    finally:
        shutil.rmtree(folder)


def in_processes(name: str, rounds: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--only", name, "--rounds", str(rounds // PROCESSES)]
    rows: list[dict[str, float]] = []
    for _ in range(PROCESSES):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    result = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    result["added_us_each"] = sorted(row["added_us"] for row in rows)  # pyright: ignore
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--only", choices=list(VARIANTS))
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure_variant(options.only, options.rounds)))
        return
    results = {name: in_processes(name, options.rounds) for name in VARIANTS}
    if options.json:
        print(json.dumps({**results["modules_13"], **results}))
        return
    print(f"{'':12}{'STEP us':>10}{'ADDED us':>10}{'PAUSED us':>10}{'NULL us':>10}{'RATIO':>10}")
    for name, row in results.items():
        print(
            f"{name:12}{row['step_us']:10.1f}{row['added_us']:+10.2f}"
            f"{row['paused_us']:+10.2f}{row['null_us']:+10.2f}"
            f"{row['ratio']:10.5f}"
        )


if __name__ == "__main__":
    main()
