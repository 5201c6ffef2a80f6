"""lightning.Trainer: 24 steps with a validation and a checkpoint every 8; then the same 24 as a
plain loop.
"""

import logging
import warnings
from typing import Any

warnings.simplefilter("ignore")
import common  # noqa: E402
import lightning  # noqa: E402
import torch  # noqa: E402
from common import SlowData, SlowNet, loss_of  # noqa: E402
from lightning.pytorch.callbacks import ThroughputMonitor  # noqa: E402
from lightning.pytorch.loggers.logger import Logger  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

logging.getLogger("lightning").setLevel(logging.ERROR)
FORWARD_MS, BACKWARD_MS, INPUT_MS = 16.0, 24.0, 12.0
WINDOW = 16


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = SlowNet(forward_ms=FORWARD_MS, backward_ms=BACKWARD_MS)
        self.at: list[int] = []

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        x, y = batch
        return loss_of(self.net(x), y)

    def validation_step(self, batch: Any, _: int) -> None:
        x, y = batch
        loss_of(self.net(x), y)

    def on_train_batch_end(self, *_: Any) -> None:
        self.at.append(common.now())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Told(Logger):
    """Keeps what it is told last."""

    name, version = "told", 0

    def __init__(self) -> None:
        super().__init__()
        self.metrics: dict[str, float] = {}

    def log_hyperparams(self, *_: Any, **__: Any) -> None: ...

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.metrics |= metrics


module, told = Module(), Told()
trainer = lightning.Trainer(
    max_steps=24,
    accelerator="cpu",
    devices=1,
    logger=told,
    log_every_n_steps=8,
    callbacks=[ThroughputMonitor(batch_size_fn=lambda batch: len(batch[0]), window_size=WINDOW)],
    enable_progress_bar=False,
    enable_model_summary=False,
    val_check_interval=8,
    enable_checkpointing=True,
    default_root_dir="out",
    num_sanity_val_steps=2,
)
trainer.fit(
    module,
    DataLoader(SlowData(48, ms=INPUT_MS / 2), batch_size=2),
    DataLoader(SlowData(6), batch_size=2),
)
plain_begin = common.now()
common.train(Module().net, DataLoader(SlowData(48, ms=INPUT_MS / 2), batch_size=2))
common.write_measured(
    anchors=module.at,
    plain_begin=plain_begin,
    window=WINDOW,
    samples_per_s=told.metrics["train/device/samples_per_sec"],
    micro_batches=1,
    forward_ms=FORWARD_MS,
    backward_ms=BACKWARD_MS,
    input_ms=INPUT_MS,
    evaluation_ms=3 * FORWARD_MS,
)
