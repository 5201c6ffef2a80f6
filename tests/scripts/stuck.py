"""Ranks 0 and 1 train together, rank 2 by itself. Rank 1 fetches its 31st batch only when the file
$MEASURED.go is there; rank 2 waits for both at the end, once $MEASURED.together is there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from common import SlowData, SlowNet, leave, train
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def is_there(name: str) -> bool:
    return Path(f"{os.environ['MEASURED']}.{name}").exists()


class Stuck(SlowData):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        while index == 60 and dist.get_rank() == 1 and not is_there("go"):
            time.sleep(0.01)
        return super().__getitem__(index)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    pair = dist.new_group([0, 1])
    model = SlowNet(forward_ms=10)
    if dist.get_rank() < 2:
        train(
            DistributedDataParallel(model, process_group=pair),
            DataLoader(Stuck(80), batch_size=2),
        )
    else:
        while not is_there("together"):
            train(model, DataLoader(SlowData(80), batch_size=2))
    leave()


if __name__ == "__main__":
    main()
