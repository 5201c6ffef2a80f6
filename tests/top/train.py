"""A plain loop, about 100 steps a second, that ends when it is told to: for the tests of top."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(400_000, 16)), batch_size=4)
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    time.sleep(0.006)
    loss.backward()
    time.sleep(0.003)
    optimizer.step()
