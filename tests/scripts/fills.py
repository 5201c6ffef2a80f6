"""Fills a folder's file system in mid-run and goes on training: `fills.py FOLDER`."""

import os
import sys

import common
from common import Meter, SlowData
from steps import Trainer
from torch.utils.data import DataLoader

FOLDER, STEPS = sys.argv[1], 200


def fill(path: str) -> bool:
    """True when there is no byte left."""
    chunk = 1 << 20
    with open(path, "ab", buffering=0) as file:
        while chunk:
            try:
                file.write(b"x" * chunk)
            except OSError:
                chunk //= 2
    return True


def main() -> None:
    train = Trainer(Meter())
    full = False
    for i, (x, y) in enumerate(DataLoader(SlowData(2 * STEPS), batch_size=2)):
        train(x, y)
        if i >= 20 and i % 20 == 0:
            full = fill(os.path.join(FOLDER, "filling"))
    print("trained", STEPS, "steps")
    common.write_measured(steps=STEPS, full=full)


if __name__ == "__main__":
    main()
