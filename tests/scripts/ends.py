"""Trains a few steps and then ends in the way that its argument says: `ends.py WAY [STEPS]`."""

import os
import signal
import sys
import time

import torch
from common import SlowData, SlowNet, SlowSGD, loss_of
from torch.utils.data import DataLoader

WAY = sys.argv[1]
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 4


def hang() -> None:
    print("waiting", flush=True)
    time.sleep(600)


class RaisesAtEnd(SlowData):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if WAY == "raise_in_input" and index >= (STEPS - 1) * 2:
            raise KeyError("no such sample")
        if WAY == "hang_in_input" and index >= (STEPS - 1) * 2:
            hang()
        return super().__getitem__(index)


class RaisingNet(SlowNet):
    raises = False
    hangs = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.raises:
            raise ValueError("in forward")
        if self.hangs:
            hang()
        return super().forward(x)


def raise_in_hook(_: torch.Tensor) -> None:
    raise ArithmeticError("in backward")


def raise_in_step(*_: object) -> None:
    raise LookupError("in the optimizer")


def handle(number: int, _: object) -> None:
    print("got signal", number, flush=True)
    sys.exit(5)


def end() -> None:
    if WAY == "exit_3":
        sys.exit(3)
    if WAY == "exit_text":
        sys.exit("nothing more to do")
    if WAY == "os_exit":
        sys.stdout.flush()
        os._exit(7)
    if WAY == "raise":
        raise RuntimeError("an error with\ntwo lines and ünicode")
    if WAY == "handled":
        signal.signal(signal.SIGTERM, handle)
        os.kill(os.getpid(), signal.SIGTERM)
    if WAY.startswith("SIG"):
        sys.stdout.flush()
        os.kill(os.getpid(), signal.Signals[WAY])
    if WAY == "wait":
        hang()


def main() -> None:
    torch.manual_seed(0)
    model = RaisingNet()
    optimizer = SlowSGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(DataLoader(RaisesAtEnd(2 * STEPS), batch_size=2)):
        if i == STEPS - 1:
            model.raises = WAY == "raise_in_forward"
            model.hangs = WAY == "hang_in_forward"
            if WAY == "raise_in_backward":
                model.last.weight.register_hook(raise_in_hook)
            if WAY == "raise_in_optimizer":
                optimizer.register_step_pre_hook(raise_in_step)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", i, loss.item().hex())
    end()


main()
