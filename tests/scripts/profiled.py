"""A torch.profiler window in mid-run, whose steps are slower than the others."""

import os

import common
import torch
from common import Meter, SlowData, SlowNet, SlowSGD, loss_of, sleep
from torch.utils.data import DataLoader

FIRST, LAST = 30, 34  # the steps that are profiled


def save(profiler: torch.profiler.profile) -> None:
    profiler.export_chrome_trace(os.path.join(os.getcwd(), "trace.json"))


def main() -> None:
    model = SlowNet(forward_ms=3, backward_ms=3)
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    meter = Meter()
    windows = torch.profiler.schedule(wait=FIRST - 1, warmup=1, active=LAST - FIRST + 1, repeat=1)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], schedule=windows, on_trace_ready=save
    ) as profiler:
        for i, (x, y) in enumerate(meter.batches(DataLoader(SlowData(120), batch_size=2))):
            with meter("forward"):
                loss = loss_of(model(x), y)
                if FIRST <= i <= LAST:
                    sleep(30)
            with meter("backward"):
                loss.backward()
            with meter("optimizer"):
                optimizer.step()
            meter.stepped()
            optimizer.zero_grad()
            profiler.step()
    meter.close()
    common.write_measured(steps=meter.steps, first=FIRST, last=LAST)


main()
