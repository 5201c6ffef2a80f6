"""DDP on gloo: STEPS steps of about MS milliseconds. `train_ddp.py STEPS MS [SLOW_MS]`.

Rank 1 takes SLOW_MS more.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    steps, ms = int(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        ms += float(sys.argv[3]) if len(sys.argv) > 3 else 0
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(steps * 4, 8), torch.randn(steps * 4, 1))
    for x, y in DataLoader(data, batch_size=4):
        time.sleep(ms / 1000)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()  # gloo aborts now and then when one rank tears down while the other still works
    print(f"rank {dist.get_rank()} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
