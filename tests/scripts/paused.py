"""Two ranks: rank 1 comes late in each seventh step, rank 0 pauses recording for five steps.

`paused.py`: how many reductions were late by then, is what the test knows of the script.
"""

from __future__ import annotations

import stepscope
import torch
import torch.distributed as dist
from common import SlowData, SlowNet, leave, loss_of, sleep
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(SlowNet(forward_ms=2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(DataLoader(SlowData(100), batch_size=2)):
        if dist.get_rank() == 0 and step in (20, 25):
            (stepscope.pause if step == 20 else stepscope.resume)()
        if dist.get_rank() == 1 and step % 7 == 3:
            sleep(40)
        loss_of(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    leave()


if __name__ == "__main__":
    main()
