"""Two ranks; rank 1 fetches its 31st batch only when the file $MEASURED.go is there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from common import SlowData, SlowNet, leave, train
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


class Stuck(SlowData):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        go = Path(os.environ["MEASURED"] + ".go")
        while index == 60 and dist.get_rank() == 1 and not go.exists():
            time.sleep(0.01)
        return super().__getitem__(index)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(SlowNet(forward_ms=10))
    train(model, DataLoader(Stuck(80), batch_size=2))
    leave()


if __name__ == "__main__":
    main()
