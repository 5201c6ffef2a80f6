"""transformers.Trainer: 24 steps of two micro-batches, evaluated and saved every 8; then the same
24 as a plain loop.
"""

import os
from typing import Any, ClassVar

import common
import torch
from common import SlowData, SlowNet, loss_of, sleep
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from transformers import Trainer, TrainerCallback, TrainingArguments

FORWARD_MS, BACKWARD_MS, INPUT_MS = 8.0, 12.0, 6.0


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
trainer = Trainer(
    Model(),
    arguments,
    train_dataset=Samples(),
    eval_dataset=Subset(Samples(), range(16)),
    callbacks=[Anchors()],
)
told = trainer.train().metrics

plain_begin = common.now()
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for micro, batch in enumerate(DataLoader(Samples(), batch_size=2)):
    (model(**batch)["loss"] / 2).backward()
    if micro % 2 == 1:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
common.write_measured(
    anchors=Anchors.at,
    plain_begin=plain_begin,
    samples=96,
    samples_per_s=told["train_samples_per_second"],
    micro_batches=2,
    forward_ms=FORWARD_MS,
    backward_ms=BACKWARD_MS,
    input_ms=INPUT_MS,
    evaluation_ms=16 * INPUT_MS / 2 + 2 * FORWARD_MS,  # in two batches
)
