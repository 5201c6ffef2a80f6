"""DeepSpeedEngine: forward, backward, step, eval, train and save_checkpoint, as the real one's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

CLIP_S = 0.004
SAVE_S = 0.02


class DeepSpeedEngine(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        super().__init__()
        self.module, self.optimizer = module, optimizer
        self.micro_steps = self.global_steps = self.skipped_steps = 0

    def train(self, mode: bool = True) -> Any:  # its own `training` stays as it is
        self.module.train(mode)

    def eval(self) -> Any:
        self.module.train(False)

    def forward(self, *inputs: Any) -> Any:
        return self.module(*inputs)

    def backward(self, loss: torch.Tensor) -> None:
        (loss / 2).backward()
        self.micro_steps += 1

    def step(self) -> None:
        if self.micro_steps % 2 == 0:
            self._take_model_step(None)

    def _take_model_step(self, lr_kwargs: Any) -> None:
        time.sleep(CLIP_S)
        if self.global_steps % 5 == 4:  # an overflow
            self.skipped_steps += 1
        else:
            self.optimizer.step()
        self.optimizer.zero_grad()
        self.global_steps += 1

    def save_checkpoint(self, folder: str) -> None:
        Path(folder).mkdir(exist_ok=True)
        time.sleep(SAVE_S)

    def save_16bit_model(self, folder: str) -> None:
        self.save_checkpoint(folder)
