"""DeepSpeed: the page's example with the real package, by its own launcher; without the package the
same hooks on a double.
"""

from __future__ import annotations

import importlib.util
import runpy
import socket
import sys
from pathlib import Path

import pytest
from observing import Ran, check_phases_add_up, observe

from integrations.pages import example

DOUBLES = Path(__file__).parent / "doubles"
LAUNCHER = "-m deepspeed.launcher.runner --num_gpus 2 --no_local_rank --master_port {} train.py"
# without the kernel that it would compile for half a minute at its first start on a CPU
NO_KERNEL = 'deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False\n'

needs_deepspeed = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None,
    reason="needs deepspeed of requirements-integrations.txt",
)

PIPELINE = """
import deepspeed
import torch
from deepspeed.pipe import PipelineModule

deepspeed.init_distributed()
layers = [torch.nn.Linear(*size) for size in ((64, 256), (256, 256), (256, 256), (256, 10))]
loss = torch.nn.CrossEntropyLoss()
model = PipelineModule(layers, num_stages=2, loss_fn=loss, partition_method="uniform")
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters()),
    config={"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8},
    training_data=torch.utils.data.TensorDataset(torch.randn(640, 64), torch.randint(10, (640,))),
)
for _ in range(20):
    engine.train_batch()
"""

LOOP = """
import torch
from deepspeed.runtime.engine import DeepSpeedEngine
from torch.utils.data import DataLoader

model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Dropout(), torch.nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer.step()  # as DeepSpeed makes the states of one
engine = DeepSpeedEngine(model, optimizer)
data = torch.randn(160, 8)
for epoch in range(2):
    for x in DataLoader(data, batch_size=4):
        engine.backward(engine(x).sum())
        engine.step()
    engine.eval()
    for x in DataLoader(data[:16], batch_size=4):
        engine(x)
    engine.train()
    engine.save_checkpoint("checkpoints")
"""


def test_an_engine_by_its_public_interface(tmp_path: Path) -> None:
    """A double, marked so in the docs: where the engine's work goes."""
    engine = runpy.run_path(str(DOUBLES / "deepspeed/runtime/engine.py"))
    (tmp_path / "train.py").write_text(LOOP)
    ran = observe(tmp_path, [sys.executable, "train.py"], env={"PYTHONPATH": str(DOUBLES)})
    rows = ran.finished().steps()
    assert [(row["backwards"], row["optimizer_steps"]) for row in rows] == [
        (2, 0 if at % 5 == 4 else 1) for at in range(40)
    ]
    assert [row["skipped_steps"] for row in rows] == [int(at % 5 == 4) for at in range(40)]
    assert min(row["optimizer_ns"] for row in rows) >= engine["CLIP_S"] * 1e9
    assert [at for at, row in enumerate(rows) if row["validation_ns"]] == [20]
    assert rows[20]["checkpoint_ns"] >= engine["SAVE_S"] * 1e9
    assert "measured as a plain loop" not in ran.stderr


def launched(folder: Path, text: str) -> Ran:
    kernel_first = NO_KERNEL + "deepspeed.init_"
    (folder / "train.py").write_text(text.replace("deepspeed.init_", kernel_first, 1))
    with socket.create_server(("127.0.0.1", 0)) as free:
        launch = LAUNCHER.format(free.getsockname()[1]).split()
    env = {"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"}
    ran = observe(folder, [sys.executable, *launch], env=env).finished()
    assert [rank["rank"] for rank in ran.summary["ranks"]] == [0, 1]
    assert ran.summary["phases"]["sync"]["measured"]
    check_phases_add_up(ran.summary)
    assert "measured as a plain loop" not in ran.stderr
    return ran


@needs_deepspeed
def test_the_real_one_under_its_launcher(tmp_path: Path) -> None:
    ran = launched(tmp_path, example("deepspeed"))
    assert ran.summary["steps"]["count"] == 40
    assert ran.summary["steps"]["micro_steps"] == pytest.approx(2, abs=0.25)
    for row in ran.steps()[1:]:
        assert row["optimizer_steps"] >= 1  # ZeRO steps once a group of parameters
        assert min(row["forward_ns"], row["backward_ns"], row["optimizer_ns"]) > 0
    assert [at for at, row in enumerate(ran.steps()) if row["validation_ns"]] == [20]
    assert any(row["checkpoint_ns"] for row in ran.steps())


@needs_deepspeed
def test_each_stage_of_the_real_ones_pipeline(tmp_path: Path) -> None:
    ran = launched(tmp_path, PIPELINE)
    for rank in (0, 1):
        rows = ran.steps(rank)
        assert [(row["backwards"], row["optimizer_steps"]) for row in rows] == [(4, 1)] * 20
        assert all(row["forward_ns"] > 0 for row in rows)
