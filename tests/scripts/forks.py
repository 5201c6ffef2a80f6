"""A training process that forks in mid-run: children that only compute, that train themselves, and
that start others.
"""

import os
import subprocess
import sys
import warnings

import common
import torch
from common import Meter, SlowData
from steps import Trainer
from torch.utils.data import DataLoader

warnings.simplefilter("error")  # also Python's, of a fork in a process with more than one thread


def child(index: int) -> None:
    if index % 3 == 0:
        torch.ones(8, 8).sum().item()
    elif index % 3 == 1:
        train = Trainer(Meter())
        for x, y in DataLoader(SlowData(8), batch_size=2):
            train(x, y)
    else:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    os._exit(index)


def main() -> None:
    meter = Meter()
    train = Trainer(meter)
    codes = []
    for i, (x, y) in enumerate(
        meter.batches(DataLoader(SlowData(80), batch_size=2, num_workers=2))
    ):
        train(x, y)
        if i % 6 == 5:
            pid = os.fork()
            if pid == 0:
                child(i // 6)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    meter.close()
    common.write_measured(steps=meter.steps, codes=codes, pid=os.getpid())


if __name__ == "__main__":
    main()
