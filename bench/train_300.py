"""300 steps of a small model: what run_overhead.py and peer.py time as a whole command."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

trace = None
if "--traceml" in sys.argv:
    import traceml_ai as traceml

    traceml.init()
    trace = traceml.trace_step

torch.manual_seed(0)
torch.set_num_threads(1)
layers: list[nn.Module] = []
for _ in range(6):
    layers += [nn.Linear(160, 160), nn.ReLU()]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(9600, 160), torch.randn(9600, 160)), batch_size=32)


def step(x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()


times = []
for x, y in loader:
    begin = time.perf_counter_ns()
    if trace is None:
        step(x, y)
    else:
        with trace(model):
            step(x, y)
    times.append(time.perf_counter_ns() - begin)
times = sorted(times[20:])
print(f"p10_us {times[len(times) // 10] / 1000:.1f}")
