"""A plain loop that says `step N` after each step: for tests that kill it."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
steps = int(sys.argv[1])
layers = [layer for _ in range(8) for layer in (nn.Linear(128, 128), nn.ReLU())]
model = nn.Sequential(nn.Linear(16, 128), *layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# One more batch than steps: a step is over when the next batch is fetched.
loader = DataLoader(TensorDataset(torch.randn(4 * (steps + 1), 16)), batch_size=4)
for number, (x,) in enumerate(loader):
    if number > 0:
        print("step", number - 1, flush=True)
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
