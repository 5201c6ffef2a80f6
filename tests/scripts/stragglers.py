"""A DDP loop in which one rank loses a fifth of the step: `stragglers.py FAULT RANK [--steps N]`.

Each rank's own work is about 60 ms a step, the fault another 12. FAULT: none, input, forward,
backward, optimizer, between, passing (between, in steps 40 to 99), gc, checkpoint, neighbour, with
a suffix for the loop: -buffers (BatchNorm), -accumulate (4 micro-steps, each one synchronised),
-fsdp (FSDP2), -fsdp1.
"""

from __future__ import annotations

import argparse
import gc
import io
import multiprocessing
import os
import time
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


def wrapped(loop: str, model: torch.nn.Module) -> torch.nn.Module:
    if loop == "fsdp":
        return shard(model)
    if loop == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    return DistributedDataParallel(model)


def train(fault: str, loop: str, slow: bool, steps: int) -> None:
    lost = {name: LOST * (fault == name and slow) for name in (fault, "input", "forward")}
    lost |= {name: LOST * (fault == name and slow) for name in ("backward", "optimizer")}
    micro = 4 if loop == "accumulate" else 1
    options: dict[str, Any] = {
        "forward_ms": (FORWARD * (fault != "neighbour") + lost["forward"]) / micro,
        "backward_ms": (BACKWARD + lost["backward"]) / micro,
        "batch_norm": loop == "buffers",
    }
    make: Any = BusyNet if fault == "neighbour" else Deep if "fsdp" in loop else SlowNet
    model = wrapped(loop, make(**options))
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    optimizer.slow_ms = OPTIMIZER + lost["optimizer"]
    data = SlowData(steps * micro * BATCH, ms=(INPUT + lost["input"]) / BATCH / micro)
    heap = garbage() if fault == "gc" and slow else []
    gc.disable()
    for i, (x, y) in enumerate(DataLoader(data, batch_size=BATCH)):
        loss_of(model(x), y).backward()
        if i % micro != micro - 1:
            continue
        optimizer.step()
        optimizer.zero_grad()
        step = i // micro
        if slow and (fault == "between" or (fault == "passing" and 40 <= step < 100)):
            sleep(LOST)
        if heap:
            gc.collect()
        if fault == "checkpoint" and slow:
            torch.save({"slow": SlowToPickle(LOST)}, io.BytesIO())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("fault")
    parser.add_argument("rank", type=int)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    fault, _, loop = given.fault.partition("-")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    slow = fault != "none" and dist.get_rank() == given.rank
    torch.manual_seed(0)
    if fault == "neighbour":
        with Neighbours(slow):
            train(fault, loop, slow, given.steps)
            dist.barrier()
    else:
        train(fault, loop, slow, given.steps)
    leave()


if __name__ == "__main__":
    main()
