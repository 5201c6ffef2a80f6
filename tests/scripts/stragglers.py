"""A DDP loop in which one rank after another loses a fifth of the step: `stragglers.py STAGE...`

A stage is FAULT[-LOOP]@RANK and lasts --steps steps. Each rank's own work is about 60 ms a step,
the fault another 12. FAULT: none, input, forward, backward, optimizer, between, gc, checkpoint,
faults (of pages, between steps), neighbour (a run of its own: it pins both ranks). LOOP: buffers
(BatchNorm), accumulate (4 micro-steps, each one synchronised), fsdp (FSDP2), fsdp1.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import mmap
import multiprocessing
import os
import time
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist
from common import SlowData, SlowNet, SlowSGD, SlowToPickle, leave, loss_of, sleep, work
from ranks import Deep, shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

LOST = 12.0
INPUT, FORWARD, BACKWARD, OPTIMIZER = 4.0, 21.0, 29.0, 6.0
BATCH = 2


def busy() -> None:
    while True:
        work(1000)


class Neighbours:
    """Other work on the core of the slow rank, all of whose own work needs that core."""

    def __init__(self, slow: bool) -> None:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[-1] if slow else cores[0]})
        context = multiprocessing.get_context("fork")
        self.processes = [context.Process(target=busy, daemon=True) for _ in range(2 * slow)]

    def __enter__(self) -> None:
        for process in self.processes:
            process.start()

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()


class BusyNet(SlowNet):
    """Needs the core for FORWARD ms, however long that takes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        end = time.thread_time_ns() + FORWARD * 1e6
        while time.thread_time_ns() < end:
            pass
        return super().forward(x)


def garbage() -> list[Any]:
    """As many objects as make a full collection last LOST ms."""
    heap: list[Any] = []
    gc.collect()
    gc.freeze()  # what torch holds
    while True:
        heap += [[i] for i in range(20_000)]
        begin = time.perf_counter_ns()
        gc.collect()
        if time.perf_counter_ns() - begin >= LOST * 1e6:
            return heap


class Pages:
    """Memory that is given back before each use, so that each page of it is a fault again."""

    PAGES = 2000

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, self.PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE)
        self.memory.madvise(mmap.MADV_NOHUGEPAGE)

    def touch(self) -> None:
        end = time.perf_counter_ns() + LOST * 1e6
        while time.perf_counter_ns() < end:
            self.memory.madvise(mmap.MADV_DONTNEED)
            self.memory[:: mmap.PAGESIZE] = b"x" * self.PAGES


class Stage:
    def __init__(self, text: str, rank: int) -> None:
        what, _, at = text.partition("@")
        self.fault, _, self.loop = what.partition("-")
        self.slow = self.fault != "none" and int(at) == rank

    def lost(self, fault: str) -> float:
        return LOST * (self.slow and self.fault == fault)


def wrapped(loop: str, model: torch.nn.Module) -> torch.nn.Module:
    if loop == "fsdp":
        return shard(model)
    if loop == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    return DistributedDataParallel(model)


def train(loop: str, stages: list[Stage], steps: int) -> None:
    micro = 4 if loop == "accumulate" else 1
    busy_net = stages[0].fault == "neighbour"
    make: Any = BusyNet if busy_net else Deep if "fsdp" in loop else SlowNet
    bare = make(batch_norm=loop == "buffers")
    net = bare.net if isinstance(bare, Deep) else bare
    model = wrapped(loop, bare)
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    data = SlowData(len(stages) * steps * micro * BATCH)
    pages = Pages()
    heap = garbage() if any(stage.lost("gc") for stage in stages) else []

    def begin(stage: Stage) -> None:
        net.forward_ms = (FORWARD * (not busy_net) + stage.lost("forward")) / micro
        net.backward_ms = (BACKWARD + stage.lost("backward")) / micro
        optimizer.slow_ms = OPTIMIZER + stage.lost("optimizer")
        data.ms = (INPUT + stage.lost("input")) / BATCH / micro

    begin(stages[0])
    for i, (x, y) in enumerate(DataLoader(data, batch_size=BATCH)):
        loss_of(model(x), y).backward()
        if i % micro != micro - 1:
            continue
        optimizer.step()
        optimizer.zero_grad()
        stage = stages[i // micro // steps]
        sleep(stage.lost("between"))
        if stage.lost("faults"):
            pages.touch()
        if stage.lost("gc"):
            gc.collect()
        if stage.lost("checkpoint"):
            torch.save({"slow": SlowToPickle(LOST)}, io.BytesIO())
        if (i + 1) % (micro * steps) == 0 and i + 1 < len(stages) * steps * micro:
            begin(stages[(i + 1) // micro // steps])
    del heap


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("stages", nargs="+")
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    stages = [Stage(text, dist.get_rank()) for text in given.stages]
    torch.manual_seed(0)
    gc.disable()
    with contextlib.ExitStack() as stack:
        if stages[0].fault == "neighbour":
            stack.enter_context(Neighbours(stages[0].slow))
        for loop, its in groupby(stages, lambda stage: stage.loop):
            train(loop, list(its), given.steps)
        dist.barrier()
    leave()


if __name__ == "__main__":
    main()
