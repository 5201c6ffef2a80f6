"""Loops whose input has a known cause, for `stepscope tune loader`: KIND [STEPS] [BATCH_MS].

Writes below $RECORD, if set, a file a process: a line with the settings that its loaders have, then
one a batch with its sample numbers. $CRASH_WITH_WORKERS=1: raises when its loader has workers. KIND
in_code calls tune_loader first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

BATCH = 4


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds  # CPU, not the clock
    while time.thread_time() < until:
        pass


class Rows(Dataset[Any]):
    def __init__(self, seconds: float, cpu: bool, length: int = 10_000) -> None:
        self.seconds, self.cpu, self.length = seconds, cpu, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        (burn if self.cpu else time.sleep)(self.seconds)
        return torch.full((8,), float(index)), index


class OwnEpoch(Rows):
    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Stream(IterableDataset[Any]):
    """Every worker repeats it: more of them would change the samples."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __iter__(self) -> Any:
        for index in range(10_000):
            time.sleep(self.seconds)
            yield torch.full((8,), float(index)), index


def main() -> None:
    kind = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    sample = float(sys.argv[3]) / 1000 / BATCH if len(sys.argv) > 3 else 0.005
    torch.manual_seed(0)
    torch.set_num_threads(1)
    options: dict[str, Any] = {"shuffle": True}
    if kind == "tensors":
        dataset: Any = TensorDataset(torch.randn(100_000, 8), torch.arange(100_000))
        options["batch_size"] = 2000
    elif kind == "stream":
        dataset, options = Stream(sample), {}
    elif kind == "epoch":
        dataset = OwnEpoch(sample, cpu=False)
        options |= {"num_workers": 1}
    elif kind == "fine":
        dataset = Rows(0, cpu=False)
    else:
        dataset = Rows(sample, cpu=kind == "cpu")
    if kind == "in_code":
        from stepscope import tune_loader

        best = tune_loader(dataset, steps=8, max_trials=2, batch_size=BATCH)
        print(json.dumps(best), flush=True)
    validation = DataLoader(Rows(0, cpu=False, length=2 * BATCH), batch_size=BATCH)
    options = {"batch_size": BATCH, **options}
    loader = DataLoader(dataset, **options)
    if os.environ.get("CRASH_WITH_WORKERS") and loader.num_workers > 0:
        raise RuntimeError("this dataset has no workers")
    settings = {
        "workers": loader.num_workers,
        "persistent": loader.persistent_workers,
        "validation": validation.num_workers,
        "rank": int(os.environ.get("RANK", 0)),
        "tune": os.environ.get("STEPSCOPE_TUNE"),
    }
    record = Path(os.environ["RECORD"], f"{os.getpid()}") if "RECORD" in os.environ else None
    print(json.dumps(settings), flush=True)
    if record is not None:
        record.write_text(json.dumps(settings) + "\n")

    distributed = "RANK" in os.environ
    if distributed:
        torch.distributed.init_process_group("gloo")
    module: nn.Module = nn.Linear(8, 1)
    if distributed:
        module = nn.parallel.DistributedDataParallel(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-9)
    step = 0
    while True:
        for x, number in loader:
            if record is not None:
                with record.open("a") as file:
                    print(number[:BATCH].tolist(), file=file)
            loss = module(x).mean()
            burn(0.06 if kind == "fine" else 0.004)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == 3:
                with torch.no_grad():
                    for vx, _ in validation:
                        module(vx)
            if step >= steps:
                if distributed:
                    torch.distributed.destroy_process_group()
                return


main()
