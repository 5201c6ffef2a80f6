"""Parameters on a device that only takes launches: `meta` stands for an accelerator. What its host
loses: options (ms).
"""

import argparse

import common
from common import Meter, SlowData, SlowNet, SlowSGD, loss_of
from torch.utils.data import DataLoader

options = argparse.ArgumentParser()
for name in ("input", "forward", "backward", "optimizer"):
    options.add_argument("--" + name, type=float, default=0.5)
lost = options.parse_args()


def main() -> None:
    model = SlowNet(forward_ms=lost.forward, backward_ms=lost.backward).to("meta")
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    optimizer.slow_ms = lost.optimizer
    meter = Meter()
    for x, y in meter.batches(DataLoader(SlowData(120, ms=lost.input / 2), batch_size=2)):
        with meter("h2d"):
            x, y = x.to("meta"), y.to("meta")
        with meter("forward"):
            loss = loss_of(model(x), y)
        with meter("backward"):
            loss.backward()
        with meter("optimizer"):
            optimizer.step()
        meter.stepped()
        optimizer.zero_grad()
    meter.close()
    common.write_measured(steps=meter.steps)


main()
