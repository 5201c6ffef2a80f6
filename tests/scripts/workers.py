"""Loading, hashed: `workers.py WAY ...`; or what goes wrong: raises, unpicklable, killed.

Nothing here knows of stepscope. Prints the SHA-256 of all batches, of the random states of torch,
NumPy and Python, and of what the workers themselves drew.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import signal
import sys
from typing import Any

import numpy as np
import torch
from common import SlowNet, loss_of, write_measured
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    get_worker_info,
)


class Scale:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * random.random()


def noise(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(x.shape) + float(np.random.rand())


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms
        self.strength = {noise: 2.0}  # found by it, whatever stands in its place

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        for transform in self.transforms:
            x = transform(x) * self.strength.get(transform, 1.0) + (transform == noise)
        return x


class Mapped(Dataset):
    def __init__(self, length: int, fault: str = "") -> None:
        self.length, self.fault = length, fault
        self.transform = Compose([Scale(), noise, torch.nn.Sequential(torch.nn.Identity())])

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.fault == "raises" and index == 21:
            raise LookupError("no sample 21")
        if self.fault == "killed" and index == 21 and get_worker_info() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.transform(torch.full((8,), float(index)))


class Streamed(IterableDataset):
    def __init__(self, length: int) -> None:
        self.inner = Mapped(length)

    def __iter__(self) -> Any:
        info = get_worker_info()
        first, of = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, len(self.inner), of):
            yield self.inner[index]


class Unpicklable(Mapped):
    def __reduce__(self) -> Any:
        raise pickle.PicklingError("not this one")


def loader_of(way: str) -> DataLoader:
    data: Any = Mapped(48, way)
    if way in ("subset", "fork"):
        data = ConcatDataset([Subset(data, list(range(24))), Subset(data, list(range(24, 48)))])
    if way.startswith("iterable"):
        data = Streamed(48)
    if way == "unpicklable":
        return DataLoader(
            Unpicklable(48), batch_size=4, num_workers=1, multiprocessing_context="spawn"
        )
    settings: dict[str, Any] = {"batch_size": 4, "shuffle": not way.startswith("iterable")}
    if way not in ("none", "iterable_none", "subset"):
        settings |= {"num_workers": 2}
    if way in ("spawn", "forkserver"):
        settings["multiprocessing_context"] = way
    if way == "persistent":
        settings["persistent_workers"] = True
    return DataLoader(data, **settings)


def load(way: str, kept: list[Any]) -> dict[str, Any]:
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    digest = hashlib.sha256()
    loader = loader_of(way)
    kept.append(loader)
    model = SlowNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    transform = getattr(loader.dataset, "transform", None)
    before = list(transform.transforms) if transform is not None else []
    batches, epochs = 0, 1 if way in ("spawn", "forkserver") else 2  # each imports torch anew
    for _ in range(epochs):
        for batch in loader:
            digest.update(batch.numpy().tobytes())
            loss_of(model(batch), torch.ones(len(batch), dtype=torch.long)).backward()
            optimizer.step()
            optimizer.zero_grad()
            batches += 1
    digest.update(torch.get_rng_state().numpy().tobytes())
    digest.update(repr(random.getstate()).encode())
    digest.update(np.random.get_state()[1].tobytes())
    same = transform is None or all(
        a is b for a, b in zip(before, transform.transforms, strict=True)
    )
    pickle.loads(pickle.dumps(loader.dataset))
    return {"digest": digest.hexdigest(), "batches": batches, "epochs": epochs, "same": same}


def main() -> None:
    kept: list[Any] = []
    write_measured(ways={way: load(way, kept) for way in sys.argv[1:]}, open_is=repr(open))


if __name__ == "__main__":
    main()
