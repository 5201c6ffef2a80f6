"""Cost of looking inside a DataLoader's worker, per sample: hooks on against off, in one process.

    ./dev bench workers [--json] [--rounds N]

Batches are made as a worker makes them, without the queues, by a fetcher with our hooks and by one
without, block by block in turn. `added_us` is the difference of processor time a sample beside its
work, of the 10th percentiles; `of_1ms` what that is of a sample of 1 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from types import SimpleNamespace
from typing import Any

BLOCK_NS = 40_000_000  # of processor time: what others do on the machine is not in it


def dataset(work_us: float) -> Any:
    """Three transforms, of classes that no other dataset has."""

    class Scale:
        def __call__(self, x: float) -> float:
            return x * 2

    class Shift:
        def __call__(self, x: float) -> float:
            return x + 1

    class Work:
        spent_ns = 0

        def __call__(self, x: float) -> float:
            begin = now = time.thread_time_ns()
            while now - begin < work_us * 1000:
                now = time.thread_time_ns()
            self.spent_ns += now - begin
            return x

    class Data:
        def __init__(self) -> None:
            self.transform = SimpleNamespace(transforms=[Scale(), Shift(), Work()])
            self.transforms = self.transform.transforms

        def __getitem__(self, index: int) -> float:
            x = float(index)
            for transform in self.transforms:
                x = transform(x)
            return x

    return Data()


def block(fetch: Any, fetcher: Any, indices: list[int]) -> float:
    """us a sample, beside its work."""
    work = fetcher.dataset.transforms[-1]
    work.spent_ns = 0
    begin = time.thread_time_ns()
    samples = 0
    while (now := time.thread_time_ns()) - begin < BLOCK_NS:
        fetch(fetcher, indices)
        samples += len(indices)
    return (now - begin - work.spent_ns) / samples / 1000


def quiet(blocks: list[float]) -> float:
    """The 10th percentile: blocks that others on the machine disturbed least."""
    return statistics.quantiles(blocks, n=10)[0]


def measure(batch: int, work_us: float, rounds: int, raw_fetch: Any) -> dict[str, float]:
    from torch.utils.data import dataloader

    fetchers: Any = dataloader._utils.fetch
    collate: Any = sum
    hooked = dataloader._DatasetKind.create_fetcher(0, dataset(work_us), True, collate, False)
    plain = fetchers._MapDatasetFetcher(dataset(work_us), True, collate, False)
    indices = list(range(batch))
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        ours.append(block(fetchers._MapDatasetFetcher.fetch, hooked, indices))
        bare.append(block(raw_fetch, plain, indices))
    added = quiet(ours) - quiet(bare)
    return {
        "sample_us": work_us + round(quiet(bare), 3),
        "added_us": round(added, 3),
        "of_1ms": round(added / 1000, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="stepscope-bench-", dir="/dev/shm")
    os.environ["STEPSCOPE_SEGMENTS"] = folder
    os.environ.pop("STEPSCOPE", None)
    try:
        from torch.utils.data import dataloader

        utilities: Any = dataloader._utils
        raw_fetch = utilities.fetch._MapDatasetFetcher.fetch
        utilities.worker._worker_info = SimpleNamespace(id=0)
        from stepscope import _install, _native

        _install.install()
        results: dict[str, Any] = {
            f"batch_{batch}_of_{work:g}_us": measure(batch, work, options.rounds, raw_fetch)
            for batch, work in ((1, 0), (32, 0), (1, 1000), (32, 100))
        }
        if not _native.loading_is_open():
            sys.exit("bench: no segment could be opened in /dev/shm")
        results["added_us"] = max(row["added_us"] for row in results.values())
    finally:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    if options.json:
        print(json.dumps(results))
        return
    print(f"{'':22}{'SAMPLE us':>12}{'ADDED us':>12}{'OF 1 ms':>10}")
    for name, row in results.items():
        if isinstance(row, dict):
            print(f"{name:22}{row['sample_us']:12.2f}{row['added_us']:+12.3f}{row['of_1ms']:10.2%}")


if __name__ == "__main__":
    main()
