"""Input pipelines of a known fault: `pipelines.py NAME`. Alone or under torchrun."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from common import SlowNet, loss_of, sleep, work, write_measured
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, get_worker_info


def sample() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(8), torch.tensor(1)


class Data(Dataset):
    def __init__(self, length: int, get: Callable[[int], Any]) -> None:
        self.length, self.get = length, get

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        got = self.get(index)
        return sample() if got is None else got


class Busy:
    """A transform that computes."""

    def __init__(self, ms: float) -> None:
        self.ms = ms

    def __call__(self, x: Any) -> Any:
        work(self.ms)
        return x


class Resize(Busy): ...


class Normalize(Busy): ...


class HoldsTheLock(Busy):
    """Computes so long, however many threads take turns."""

    def __call__(self, x: Any) -> Any:
        end = time.thread_time() + self.ms / 1e3
        while time.thread_time() < end:
            pass
        return x


def flip(x: Any) -> Any:
    return x


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x


class Transformed(Dataset):
    def __init__(self, length: int, transform: Any) -> None:
        self.length, self.transform = length, transform

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.transform(sample()[0]), torch.tensor(1)


class Threaded(Transformed):
    """Gets the samples of a batch on threads, which take turns at the interpreter lock."""

    pool: Any = None

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if self.pool is None:
            self.pool = ThreadPoolExecutor(4)
        return list(self.pool.map(self.__getitem__, indices))


class Small(Dataset):
    """A file a sample, on storage that is slow to open."""

    def __init__(self, length: int) -> None:
        self.folder = tempfile.mkdtemp()
        self.length = length
        for i in range(length):
            (Path(self.folder) / str(i)).write_bytes(bytes(8))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        sleep(8)
        with open(f"{self.folder}/{index}", "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).float(), 1


class Pictures(Dataset):
    """JPEGs in memory: decoding is all there is."""

    def __init__(self, length: int) -> None:
        from PIL import Image

        noise = Image.effect_noise((700, 700), 60).convert("RGB")
        packed = io.BytesIO()
        noise.save(packed, "JPEG", quality=95)
        self.packed, self.length = packed.getvalue(), length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        with Image.open(io.BytesIO(self.packed)) as picture:
            picture.load()
            return torch.tensor(picture.getpixel((0, 0)) + (0,) * 5).float(), 1


def as_they_are(samples: list[Any]) -> Any:
    """Arrays in a list go through the pipe; the model gets a small tensor."""
    return [s[2] for s in samples], torch.stack([s[0] for s in samples]), torch.ones(len(samples))


def large(index: int) -> Any:
    import numpy as np

    return (*sample(), np.ones(1_500_000, dtype=np.uint8))


def slow_for_one(index: int) -> None:
    info = get_worker_info()
    sleep(12 if info is not None and info.id == 1 else 2)


def starts_slowly(_: int) -> None:
    time.sleep(0.25)


def uneven(index: int) -> None:
    sleep(60 if index % 40 == 7 else 0.5)


# name -> (dataset, loader's settings, ms that the model takes, epochs)
def pipelines() -> dict[str, Callable[[], tuple[Any, dict[str, Any], float, int]]]:
    b2, b4 = {"batch_size": 2}, {"batch_size": 4}
    return {
        "sleep_in_read": lambda: (Data(120, lambda i: sleep(8)), {**b2, "num_workers": 1}, 2, 1),
        "cpu_in_decode": lambda: (Pictures(220), {**b4, "num_workers": 1}, 2, 1),
        "slow_transform": lambda: (
            Subset(
                Transformed(260, Compose([Normalize(0.2), Resize(4.0), flip])), list(range(240))
            ),
            {**b4, "num_workers": 1},
            2,
            1,
        ),
        "tiny_files": lambda: (Small(120), {**b2, "num_workers": 1}, 2, 1),
        "large_hand_over": lambda: (
            Data(300, large),
            {**b4, "num_workers": 1, "collate_fn": as_they_are},
            1,
            1,
        ),
        "restart_each_epoch": lambda: (
            Data(24, lambda i: None),
            {**b4, "num_workers": 1, "worker_init_fn": starts_slowly},
            4,
            8,
        ),
        "one_slow_worker": lambda: (Data(400, slow_for_one), {**b4, "num_workers": 2}, 2, 1),
        "gil_transform": lambda: (
            Threaded(260, Compose([HoldsTheLock(3.0)])),
            {**b4, "num_workers": 1},
            2,
            1,
        ),
        "too_many_workers": lambda: (
            Data(300, lambda i: work(4)),
            {**b4, "num_workers": 6},
            1,
            1,
        ),
        "input_fine": lambda: (Data(160, lambda i: None), {**b4, "num_workers": 1}, 25, 1),
        "loads_itself": lambda: (Data(240, lambda i: work(2)), b4, 4, 1),
        "slow_transform_itself": lambda: (
            Transformed(240, Compose([Normalize(0.1), Resize(3.0)])),
            b4,
            2,
            1,
        ),
        "uneven": lambda: (Data(320, uneven), {**b4, "num_workers": 1}, 12, 1),
    }


def main() -> None:
    torch.set_num_threads(1)
    name = sys.argv[1]
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    dataset, settings, model_ms, epochs = pipelines()[name]()
    if name == "too_many_workers":
        os.sched_setaffinity(0, set(list(os.sched_getaffinity(0))[:1]))
    model: nn.Module = SlowNet(forward_ms=model_ms)
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(dataset, **settings)
    steps, waited = 0, 0.0
    begin = time.perf_counter()
    for _ in range(epochs):
        batches = iter(loader)
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            if batch is None:
                break
            waited += time.perf_counter() - asked
            x = batch[-2].reshape(len(batch[-1]), -1)[:, :8]
            loss_of(model(x), torch.ones(len(x), dtype=torch.long)).backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    seconds = time.perf_counter() - begin
    if ranks > 1:
        from common import leave

        leave()
    if int(os.environ.get("RANK", "0")) == 0:
        write_measured(batches=steps, waited_share=waited / seconds)


if __name__ == "__main__":
    main()
