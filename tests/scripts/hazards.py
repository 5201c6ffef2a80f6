"""Loops that something is wrong with, though they are not slow: hazards.py KIND.

repeats: two workers go through all of an IterableDataset; splits: each through its part.
handles: the dataset opened its file before its workers were forked; lazy: each opens its own.
files: nearly all files that may be open are. shm: batches loaded ahead may need more than 64 MB.
grows: a worker takes memory until the kernel ends it; killed: somebody kills it.
"""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import torch
from common import sleep, write_measured
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

KIND = sys.argv[1]
LENGTH, FEATURES = 60, 8


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[torch.Tensor]:
        first, each = 0, 1
        info = get_worker_info() if KIND == "splits" else None
        if info is not None:
            first, each = info.id, info.num_workers
        for index in range(first, LENGTH, each):
            yield torch.full((FEATURES,), float(index))


class Samples(Dataset):
    file: BinaryIO | None

    def __init__(self) -> None:
        self.file = open(__file__, "rb") if KIND == "handles" else None  # noqa: SIM115

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        if KIND == "lazy" and self.file is None:
            self.file = open(__file__, "rb")  # noqa: SIM115
        if KIND == "shm":
            sleep(40)
            return torch.zeros(1 << 20)
        worker = get_worker_info()
        if index == LENGTH // 2 and worker is not None:
            if KIND == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if KIND == "grows":
                sleep(2000)  # the run is known by then
            held: list[bytearray] = []
            while KIND == "grows":
                held.append(bytearray(b"x" * (8 << 20)))
        return torch.full((FEATURES,), float(index))


def main() -> None:
    held: list[Any] = []
    if KIND == "files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        while len(os.listdir("/proc/self/fd")) < 230:
            held.append(open(os.devnull, "rb"))  # noqa: SIM115
    model = nn.Linear(1 << 20 if KIND == "shm" else FEATURES, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    stream = KIND in ("repeats", "splits")
    workers = 0 if KIND == "files" else 2
    loader = DataLoader(
        Stream() if stream else Samples(),
        batch_size=1 if KIND == "shm" else 2,
        num_workers=workers,
        prefetch_factor=8 if workers else None,
    )
    seen: list[float] = []
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        seen += x[:, 0].tolist()
        if KIND in ("grows", "killed", "files"):
            sleep(60)
    write_measured(seen=len(seen), different=len(set(seen)))


if __name__ == "__main__":
    main()
