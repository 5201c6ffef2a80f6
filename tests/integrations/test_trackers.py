"""W&B, MLflow and TensorBoard, the real packages without a network: live, and a whole run
afterwards.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from observing import Ran, execute

from integrations.pages import write_example

AFTERWARDS = """
stepscope.stop()
run = stepscope.load(next(Path("stepscope-runs").iterdir()))
stepscope_tensorboard.log_run(writer, run)
stepscope_mlflow.log_run(run)
stepscope_wandb.log_run(wandb_run, run)
print("WANDB", sorted(k for k in wandb_run.summary.keys() if k.startswith("stepscope/")))
writer.close()
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    import sys

    folder = tmp_path_factory.mktemp("trackers")
    script = write_example("trackers", folder)
    text = script.read_text()
    assert text.count("writer.close()\n") == 1
    script.write_text("from pathlib import Path\n" + text.replace("writer.close()\n", AFTERWARDS))
    quiet = {
        "MLFLOW_TRACKING_URI": "file:mlruns",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "WANDB_SILENT": "true",
    }
    return execute(folder, [sys.executable, "train.py"], env=quiet).finished()


def test_tensorboard(ran: Ran) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(ran.folder / "tensorboard"), {"scalars": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    live = events.Scalars("stepscope/step_ms")
    assert 1 <= len(live) <= 6
    assert {event.step % 500 for event in live} == {499}
    series = events.Scalars("stepscope/series/forward_ms")
    assert len(series) == 2000
    assert all(event.value > 0 for event in series)
    assert "stepscope/verdict/text_summary" in tags["tensors"]
    assert "stepscope/card/text_summary" in tags["tensors"]


def test_mlflow(ran: Ran) -> None:
    (run,) = (path for path in (ran.folder / "mlruns/0").iterdir() if (path / "metrics").is_dir())
    metrics = run / "metrics/stepscope"
    assert len((metrics / "series/step_ms").read_text().splitlines()) == 2000
    assert len((metrics / "step_ms").read_text().splitlines()) >= 2
    assert ": " in (run / "tags/stepscope.verdict").read_text()
    assert (
        (run / "artifacts/stepscope/card.txt")
        .read_text()
        .startswith((run / "tags/stepscope.verdict").read_text().split(":")[0])
    )


def test_wandb(ran: Ran) -> None:
    said = next(line for line in ran.stdout.splitlines() if line.startswith("WANDB"))
    for name in ("step_ms", "forward_ms", "verdict", "card", "series/input_ms"):
        assert f"'stepscope/{name}'" in said
    files = list(Path(ran.folder).glob("wandb/offline-run-*/run-*.wandb"))
    assert len(files) == 1
    assert b"stepscope/series/" in files[0].read_bytes()


def test_what_it_took_is_a_row(ran: Ran) -> None:
    (run,) = (ran.folder / "stepscope-runs").iterdir()
    ran.run = run
    assert any(step["user_phases_ns"].get("logging", 0) > 0 for step in ran.steps())
