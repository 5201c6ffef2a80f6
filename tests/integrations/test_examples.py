"""Each page's example, as it stands there: under `stepscope run`, and where it starts Stepscope
itself also without. Real packages, small random models, made-up data.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from observing import Ran, check_phases_add_up, execute, observe, together

from integrations.pages import PAGES, example, write_example

pytestmark = pytest.mark.alone  # a log waits 10 ms for the agent, and no longer

# what accelerate and the hub clients would ask of the network or the terminal
QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TQDM_DISABLE": "1"}
ACCELERATE = "accelerate.commands.accelerate_cli launch --cpu --num_processes 1 --num_machines 1"
ACCELERATE += " --mixed_precision no --dynamo_backend no"
COMMANDS = {  # under `stepscope run`
    "huggingface": "train.py",
    "lightning": "train.py",
    "accelerate": f"-m {ACCELERATE} train.py",
    "distributed": "-m torch.distributed.run --standalone --nproc-per-node 2 train.py",
    "timm": "train.py",
}


def resumed_lightning() -> str:
    """Two epochs more, from where its first run's last epoch ended."""
    text = example("lightning").replace("max_epochs=3", "max_epochs=5")
    saved = "next(__import__('pathlib').Path('logs').rglob('*.ckpt'))"
    return text.replace("batch_size=128))", f"batch_size=128), ckpt_path={saved})")


HAS_TRL = importlib.util.find_spec("trl") is not None
needs_trl = pytest.mark.skipif(not HAS_TRL, reason="needs trl of requirements-integrations.txt")
# Without it: one after the other, since importing a framework takes longer than any of them.
ALONE = {
    "transformers": {
        "huggingface_alone": example("huggingface"),
        "resumed": example("huggingface").replace(
            ".train()", ".train(resume_from_checkpoint='out/checkpoint-20')"
        ),
        **({"trl": example("trl")} if HAS_TRL else {}),
    },
    "lightning": {
        "lightning_alone": example("lightning"),
        "lightning_resumed": resumed_lightning(),
        "fabric": "import stepscope; stepscope.start()\n" + example("lightning", "fabric.py"),
    },
}


# A step of 50 ms: what an agent knows is a second old, in which an example may have run through. So
# has it under `stepscope run`, where only the last log has the phases.
UNHURRIED = """import time
from torch.optim.optimizer import register_optimizer_step_pre_hook
register_optimizer_step_pre_hook(lambda *_: time.sleep(0.05))
"""


def settle_before_destroy(train: Path) -> None:
    """gloo aborts now and then, also without stepscope, while its thread is at the barrier."""
    destroy = "dist.destroy_process_group()"
    train.write_text(
        train.read_text().replace(destroy, f"__import__('time').sleep(0.2)\n{destroy}")
    )


def execute_alone(folder: Path, texts: dict[str, str]) -> dict[str, Ran]:
    folder.mkdir()
    main = [UNHURRIED, "import runpy, stepscope"]
    for name, text in texts.items():
        (folder / f"{name}_page.py").write_text(text)  # trl.py would be the package
        main += [f"runpy.run_path('{name}_page.py')", "stepscope.stop()"]
    (folder / "main.py").write_text("\n".join(main))
    ran = execute(folder, [sys.executable, "main.py"], env=QUIET).finished()
    found = {}
    for name in texts:
        (run,) = (folder / "stepscope-runs").glob(f"{name}_page-*")
        found[name] = dataclasses.replace(ran, run=run)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("examples")
    for page in COMMANDS:
        write_example(page, root / page)
    settle_before_destroy(root / "distributed/train.py")
    calls = {
        name: lambda name=name: observe(
            root / name, [sys.executable, *COMMANDS[name].split()], env=QUIET
        )
        for name in COMMANDS
    }
    found: dict[str, Ran] = {}
    with ThreadPoolExecutor(1) as pool:  # beside the others
        alone = [
            pool.submit(execute_alone, root / f"{group}_alone", texts)
            for group, texts in ALONE.items()
        ]
        found |= together(calls, at_once=1)
        for group in alone:
            found |= group.result()
    return found


STEPS = {  # optimizer steps, micro-steps in each
    "huggingface": (40, 2),
    "huggingface_alone": (40, 2),
    "lightning": (60, 2),
    "lightning_alone": (60, 2),
    "accelerate": (50, 4),
    "distributed": (20, 2),
    "resumed": (20, 2),  # from step 20: what was skipped is in none of them
    "trl": (30, 1),
    "fabric": (40, 1),
    "timm": (60, 4),
    "lightning_resumed": (40, 2),
}


NAMES = [pytest.param(name, marks=needs_trl if name == "trl" else ()) for name in STEPS]


@pytest.mark.parametrize("name", NAMES)
def test_an_optimizer_step_is_a_step(runs: dict[str, Ran], name: str) -> None:
    """With the callback under `stepscope run`, and alone: never twice."""
    ran = runs[name].finished()
    steps, micro = STEPS[name]
    assert ran.summary["steps"]["count"] == steps
    assert ran.summary["steps"]["failed"] == 0
    assert ran.summary["steps"]["micro_steps"] == pytest.approx(micro, abs=0.25)
    check_phases_add_up(ran.summary)
    card = (ran.run / "summary.txt").read_text()
    assert ("micro-steps" in card) == (micro > 1)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_ours_is_said_on_the_way(runs: dict[str, Ran], name: str) -> None:
    ran = runs[name].finished()
    assert "Exception ignored" not in ran.stderr
    assert "stepscope: hook on" not in ran.stderr
    assert "measured as a plain loop" not in ran.stderr


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("huggingface", ("validation", "checkpoint", "callbacks", "logging")),
        ("lightning", ("validation", "checkpoint", "callbacks", "logging")),
        pytest.param("trl", ("callbacks", "logging"), marks=needs_trl),
        ("fabric", ("checkpoint", "logging")),
        ("timm", ("validation", "checkpoint", "other_after_optimizer")),
    ],
)
def test_what_the_framework_does_has_rows(
    runs: dict[str, Ran], name: str, rows: tuple[str, ...]
) -> None:
    ran = runs[name].finished()
    for row in rows:
        spent = [
            step["user_phases_ns"].get(row, 0)
            if row in ("callbacks", "logging")
            else step[f"{row}_ns"]
            for step in ran.steps()
        ]
        assert any(ns > 0 for ns in spent), row


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("resumed", 20 * 8 + 4),  # transformers looks one batch ahead, and ends in mid-epoch
        ("lightning_resumed", 40 * 64),
    ],
)
def test_a_resumed_training_counts_what_it_trained_itself(
    runs: dict[str, Ran], name: str, samples: int
) -> None:
    """Skipping to where it stopped is in no step, so the rates are those of the steps."""
    ran = runs[name].finished()
    rows, summary = ran.steps(), ran.summary
    assert sum(row["samples"] for row in rows) == samples
    spent_s = sum(row["step_time_ns"] for row in rows[10:]) / 1e9
    assert summary["throughput"]["steps_per_s"] == pytest.approx(len(rows[10:]) / spent_s, rel=0.1)
    seen = sum(row["samples"] for row in rows[10:])
    assert summary["throughput"]["samples_per_s"] == pytest.approx(seen / spent_s, rel=0.1)


def test_the_trainers_own_log_has_phases_and_verdict(runs: dict[str, Ran]) -> None:
    for name in ("huggingface", "huggingface_alone"):
        log = runs[name].finished().stdout
        assert "'stepscope/step_ms'" in log, log
        assert "'stepscope/forward_ms'" in log
        assert "'stepscope/verdict'" in log
        evaluated = [line for line in log.splitlines() if "eval_loss" in line]
        assert evaluated
        assert not [line for line in evaluated if "stepscope/" in line.split("eval_loss")[1]]


def test_lightnings_logger_has_phases(runs: dict[str, Ran]) -> None:
    for name in ("lightning", "lightning_alone"):
        files = list(runs[name].finished().folder.glob("logs/*/version_0/metrics.csv"))
        assert len(files) == 1
        with files[0].open() as lines:
            rows = [row for row in csv.DictReader(lines) if row.get("stepscope/step_ms")]
        assert rows
        assert all(float(row["stepscope/forward_ms"]) > 0 for row in rows)


def test_alone_the_card_comes_at_the_end(runs: dict[str, Ran]) -> None:
    for name in (name for texts in ALONE.values() for name in texts):
        ran = runs[name].finished()
        assert (ran.run / "summary.txt").read_text().strip() in ran.stderr


def test_recomputed_forward_is_a_part_of_backward(runs: dict[str, Ran]) -> None:
    summary = runs["distributed"].finished().summary
    part, backward = summary["parts"]["recompute"], summary["phases"]["backward"]
    assert part["phase"] == "backward"
    assert 0 < part["mean_ms"] < backward["mean_ms"]
    assert part["share"] == pytest.approx(part["mean_ms"] / summary["steps"]["mean_ms"], rel=0.01)


def test_two_ranks_of_the_distributed_example(runs: dict[str, Ran]) -> None:
    summary = runs["distributed"].finished().summary
    assert [rank["rank"] for rank in summary["ranks"]] == [0, 1]
    assert summary["phases"]["sync"]["measured"]


@pytest.mark.fast
def test_pages_are_no_wider_than_a_screen() -> None:
    for page in PAGES.glob("*.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            assert len(line) <= 130 or line.startswith("|"), f"{page.name}: {line}"
