"""Memory that grows, or only seems to: `memory.py losses|workers|shared`.

losses: keeps each step's loss with its graph. workers: two workers, each of which keeps something
of every sample. shared: four workers that read one large object of the parent's, forked and not
copied.
"""

import os
import sys
import time
from typing import ClassVar

import common
import torch
from common import SlowData, SlowNet, loss_of, sleep
from torch.utils.data import DataLoader

WAY = sys.argv[1]
STEPS = 130
STEP_MS = 110 if WAY == "losses" else 30  # memory is read once a second, and ten times at least
MEGABYTE = 1 << 20
LARGE = 300 * MEGABYTE


class Keeps(SlowData):
    """A worker keeps 1 MB of each sample it reads."""

    kept: ClassVar[list[bytes]] = []

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if WAY == "workers":
            self.kept.append(os.urandom(64) * (MEGABYTE // 64))
        return super().__getitem__(index)


def main() -> None:
    held = os.urandom(64) * (LARGE // 64) if WAY == "shared" else b""
    data = Keeps(2 * STEPS)
    data.held = held
    workers = {"losses": 0, "workers": 2, "shared": 4}[WAY]
    loader = DataLoader(
        data, batch_size=2, num_workers=workers, multiprocessing_context="fork" if workers else None
    )
    model = SlowNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    begin = time.perf_counter()
    for x, y in loader:
        loss = loss_of(model(x), y)
        if WAY == "losses":  # with its graph a megabyte and more
            wide = torch.ones(MEGABYTE // 16, requires_grad=True) * 2
            loss = loss + (wide * wide).sum() * 0
            kept.append(loss)
        loss.backward(retain_graph=WAY == "losses")
        optimizer.step()
        optimizer.zero_grad()
        sleep(STEP_MS)
    common.write_measured(
        steps=STEPS, seconds=time.perf_counter() - begin, held=len(held), kept=len(kept) * MEGABYTE
    )


main()
