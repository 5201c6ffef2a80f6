"""A plain loop that loses time where its options say, and measures itself: `phases.py --input 4
--forward 6 ...` (ms).
"""

import argparse
import gc
import io

import common
import torch
from common import Meter, SlowData, SlowNet, SlowSGD, SlowToPickle, loss_of, sleep

options = argparse.ArgumentParser()
for name in (
    "input",
    "before_forward",
    "forward",
    "loss",
    "backward",
    "after_backward",
    "optimizer",
    "after_optimizer",
    "checkpoint",
    "validation",
    "gc",
):
    options.add_argument("--" + name.replace("_", "-"), type=float, default=0.0, dest=name)
options.add_argument("--steps", type=int, default=60)
options.add_argument("--epochs", type=int, default=2)
options.add_argument("--every", type=int, default=1, help="a checkpoint each that many steps")
options.add_argument("--busy", action="store_true", help="keep the CPU busy instead of sleeping")
options.add_argument("--workers", type=int, default=0)
lost = options.parse_args()
if lost.busy:
    common.sleep = sleep = common.work  # SlowNet and SlowData call it by its module


def collect_garbage() -> None:
    """Collections that cost about the ms asked for."""
    end = common.now() + lost.gc * 1e6
    while common.now() < end:
        gc.collect()


def main() -> None:
    torch.manual_seed(0)
    batch, rows = 4, lost.steps // lost.epochs * 4
    loader = torch.utils.data.DataLoader(
        SlowData(rows, ms=lost.input / batch), batch_size=batch, num_workers=lost.workers
    )
    held_out = torch.utils.data.DataLoader(SlowData(16), batch_size=4)
    model = SlowNet(forward_ms=lost.forward, backward_ms=lost.backward)
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    optimizer.slow_ms = lost.optimizer
    saved = {"model": model.state_dict(), "slow": SlowToPickle(lost.checkpoint)}
    gc.freeze()  # what torch made is not looked at again: a collection costs next to nothing
    heap = [[i] for i in range(150_000 if lost.gc else 0)]  # what a collection looks at
    meter = Meter()
    done = 0
    for _ in range(lost.epochs):
        model.train()
        for x, y in meter.batches(loader):
            sleep(lost.before_forward)
            with meter("forward"):
                loss = loss_of(model(x), y)
                sleep(lost.loss)
            with meter("backward"):
                loss.backward()
            sleep(lost.after_backward)
            with meter("optimizer"):
                optimizer.step()
            meter.stepped()
            optimizer.zero_grad()
            sleep(lost.after_optimizer)
            done += 1
            if lost.gc:
                with meter("gc"):
                    collect_garbage()
            if lost.checkpoint and done % lost.every == 0:
                with meter("checkpoint"):
                    torch.save(saved, io.BytesIO())
        if lost.validation:
            with meter("validation"):
                model.eval()
                with torch.no_grad():
                    for x, y in held_out:
                        loss_of(model(x), y)
                        sleep(lost.validation / 4)
    meter.close()
    assert len(heap) in (0, 150_000)
    common.write_measured(steps=meter.steps)


main()
