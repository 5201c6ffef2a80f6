"""Memory that grows, or only seems to: `memory.py losses|shared`.

losses: keeps each step's loss with its graph. shared: four workers that read one large object of
the parent's, forked and not copied.
"""

import os
import sys
import time

import common
import torch
from common import SlowData, SlowNet, loss_of, sleep
from torch.utils.data import DataLoader

KEEPS_LOSSES = sys.argv[1] == "losses"
STEPS = 130
STEP_MS = 110 if KEEPS_LOSSES else 30  # memory is read once a second, and ten times at least
MEGABYTE = 1 << 20
LARGE = 300 * MEGABYTE


def main() -> None:
    data = SlowData(2 * STEPS)
    data.held = b"" if KEEPS_LOSSES else os.urandom(64) * (LARGE // 64)
    workers = 0 if KEEPS_LOSSES else 4
    loader = DataLoader(
        data, batch_size=2, num_workers=workers, multiprocessing_context="fork" if workers else None
    )
    model = SlowNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    begin = time.perf_counter()
    for x, y in loader:
        loss = loss_of(model(x), y)
        if KEEPS_LOSSES:  # with its graph a megabyte and more
            wide = torch.ones(MEGABYTE // 16, requires_grad=True) * 2
            loss = loss + (wide * wide).sum() * 0
            kept.append(loss)
        loss.backward(retain_graph=KEEPS_LOSSES)
        optimizer.step()
        optimizer.zero_grad()
        sleep(STEP_MS)
    common.write_measured(
        steps=STEPS,
        seconds=time.perf_counter() - begin,
        held=len(data.held),
        kept=len(kept) * MEGABYTE,
    )


main()
