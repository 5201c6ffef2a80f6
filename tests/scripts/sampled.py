"""Two ranks and a DistributedSampler, three epochs: `sampled.py [told]`, told: with set_epoch."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from common import SlowData, SlowNet, leave, train
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(SlowNet())
    data = SlowData(80)
    sampler: DistributedSampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=2, sampler=sampler)
    next(iter(loader))  # a peek is no epoch
    for epoch in range(3):
        if "told" in sys.argv:
            sampler.set_epoch(epoch)
        train(model, loader)
    leave()


if __name__ == "__main__":
    main()
