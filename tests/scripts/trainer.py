"""transformers.Trainer: 24 steps of two micro-batches, evaluated and saved every 8."""

import os
from typing import Any, ClassVar

import common
import torch
from common import SlowData, SlowNet, loss_of, sleep
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

FORWARD_MS, BACKWARD_MS, INPUT_MS = 3.0, 4.0, 2.0


class Samples(Dataset):
    data = SlowData(96)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        sleep(INPUT_MS / 2)
        x, y = self.data[index]
        return {"x": x, "labels": y}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = SlowNet(forward_ms=FORWARD_MS, backward_ms=BACKWARD_MS)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.net(x)
        return {"loss": loss_of(logits, labels), "logits": logits}


class Anchors(TrainerCallback):
    at: ClassVar[list[int]] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.at.append(common.now())


arguments = TrainingArguments(
    output_dir=os.path.join(os.getcwd(), "out"),
    max_steps=24,
    per_device_train_batch_size=2,
    report_to=[],
    gradient_accumulation_steps=2,
    eval_strategy="steps",
    eval_steps=8,
    save_steps=8,
    use_cpu=True,
    disable_tqdm=True,
    logging_steps=1000,
)
Trainer(
    Model(), arguments, train_dataset=Samples(), eval_dataset=Samples(), callbacks=[Anchors()]
).train()
common.write_measured(
    anchors=Anchors.at,
    micro_batches=2,
    forward_ms=FORWARD_MS,
    backward_ms=BACKWARD_MS,
    input_ms=INPUT_MS,
)
