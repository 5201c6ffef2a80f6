"""What happens inside a loop: peeks, skipped steps, caught exceptions, profiler windows, devices
without times.
"""

from pathlib import Path
from typing import Any

import pytest
from observing import (
    Ran,
    compare_steps,
    execute,
    loop_of,
    match,
    observe,
    script,
    steps_run,
    together,
    total_of,
)


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return steps_run(tmp_path_factory.mktemp("steps"))


def rows_of(ran: Ran, name: str) -> list[Any]:
    return match(ran.steps(), [step["anchor"] for step in loop_of(ran, name)[0]])


@pytest.mark.parametrize(
    "name", ["two_epochs", "peeks", "validation", "validation_with_gradients", "sanity_check_first"]
)
def test_D18_only_training_batches_are_counted(loops: Ran, name: str) -> None:
    """Neither a peek, nor a validation batch, nor the fetch that finds the loader exhausted is a
    step's batch.
    """
    # a loader that was only peeked into is trusted from its second backward on
    for row in rows_of(loops, name)[2 if name == "peeks" else 1 :]:
        assert row["fetches"] == 1, row
        assert row["samples"] == 2, row


@pytest.mark.parametrize(
    "name", ["validation", "validation_without_eval", "validation_with_gradients"]
)
def test_D18_validation_is_in_no_phase_of_training(loops: Ran, name: str) -> None:
    steps, _ = loop_of(loops, name)
    rows = rows_of(loops, name)
    after = [i for i, step in enumerate(steps) if i and step["phases"].get("validation")]
    assert len(after) == 3
    # the start of the next epoch's loader stands beside it
    compare_steps([rows[i] for i in after], [steps[i] for i in after])


def test_M02_a_step_that_the_scaler_skips_is_a_step_and_told_apart(loops: Ran) -> None:
    rows = rows_of(loops, "grad_scaler_skips")
    assert len(rows) == 9
    assert [row["skipped_steps"] for row in rows] == [0, 0, 1] * 3
    assert [row["optimizer_steps"] for row in rows] == [1, 1, 0] * 3
    assert not any(row["failed"] for row in rows)


def test_M06_a_caught_exception_fails_its_step_and_no_other(loops: Ran) -> None:
    steps, failed = loop_of(loops, "caught_exceptions")
    good = rows_of(loops, "caught_exceptions")
    bad = match(loops.steps(), failed)
    assert (len(good), len(bad)) == (5, 3)
    for row in bad:
        following = next(r for r in loops.steps() if r["begin_ns"] == row["end_ns"])
        assert not following["failed"]
    compare_steps(good[1:], steps[1:], ("input", "forward", "backward", "optimizer"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("cases")
    return together(
        {
            "profiled": lambda: observe(root / "profiled", script("profiled.py")),
            "device": lambda: observe(
                root / "device", script("accelerator.py", "--forward", 4, "--backward", 4)
            ),
            "device_optimizer": lambda: observe(
                root / "device_optimizer", script("accelerator.py", "--optimizer", 9)
            ),
            "device_input": lambda: observe(
                root / "device_input", script("accelerator.py", "--input", 12)
            ),
            "no_torch": lambda: observe(
                root / "no_torch", [*script("")[:1], "-c", "print('done')"]
            ),
            "no_steps": lambda: observe(
                root / "no_steps", [*script("")[:1], "-c", "import torch; torch.ones(1)"]
            ),
            "isolated": lambda: observe(
                root / "isolated", [script("")[0], "-E", str(script("ends.py")[1]), "ok"]
            ),
        }
    )


def test_P06_profiled_steps_are_flagged_and_not_averaged_in(runs: dict[str, Ran]) -> None:
    ran = runs["profiled"].finished()
    assert ran.measured is not None
    steps = ran.measured["steps"]
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    first, last = ran.measured["first"], ran.measured["last"]
    profiled = [i for i, row in enumerate(rows) if row["profiled"]]
    assert set(range(first, last + 1)) <= set(profiled)
    assert (
        len(profiled) <= last - first + 4
    )  # the one before, that warms up, and those that start and end it
    assert ran.summary["steps"]["count"] == len(steps)
    assert ran.summary["steps"]["profiled"] == len(profiled)
    steady = [
        step
        for i, step in enumerate(steps)
        if i not in profiled and i >= ran.summary["steps"]["warmup"]
    ]
    mean_ms = sum(map(total_of, steady)) / len(steady) / 1e6
    assert ran.summary["steps"]["mean_ms"] == pytest.approx(mean_ms, rel=0.05)
    assert sum(row["profiler_ns"] for row in rows) > 0


@pytest.mark.parametrize("name", ["device", "device_optimizer", "device_input"])
def test_M07_M09_host_time_of_launches_is_not_judged(runs: dict[str, Ran], name: str) -> None:
    """Parameters on a device, and no device times: only step time, input, checkpoint, validation
    and gc are judged.
    """
    summary = runs[name].finished().summary
    codes = {finding["code"] for finding in summary["findings"]}
    assert not codes & {
        "COMPUTE_BOUND",
        "OPTIMIZER_BOUND",
        "H2D_BOUND",
        "SYNC_BOUND",
        "NO_BOTTLENECK",
    }
    for phase in ("h2d", "forward", "backward", "optimizer"):
        assert summary["phases"][phase]["clock"] == "host"
    if name == "device_input":
        assert summary["verdict"]["code"] == "INPUT_BOUND"
    else:
        assert summary["verdict"]["code"] == "INSUFFICIENT_DATA"
        assert any("device" in text for text in summary["verdict"]["not_measured"])
    assert "device" in (runs[name].run / "summary.txt").read_text()


def test_M09_what_was_not_measured_is_null_and_named(runs: dict[str, Ran]) -> None:
    for name in ("no_torch", "no_steps", "isolated"):
        ran = runs[name].finished()
        summary = ran.summary
        assert summary["verdict"]["code"] == "INSUFFICIENT_DATA"
        assert summary["steps"]["count"] == 0
        for value in ("mean_ms", "median_ms", "p95_ms"):
            assert summary["steps"][value] is None
        for phase, found in summary["phases"].items():
            assert found == found | {"measured": False, "mean_ms": None, "share": None}, (
                name,
                phase,
            )
        assert summary["throughput"]["samples_per_s"] is None
        gpus = summary["resources"]["gpus"]
        assert (gpus["measured"], gpus["average"], gpus["peak"]) == (False, None, None)
        assert "not measured" in ran.stderr


def test_M09_an_interpreter_that_was_not_observed_is_named_with_the_reason(
    runs: dict[str, Ran],
) -> None:
    card = runs["isolated"].finished().stderr
    assert "not observed" in card
    assert "python" in card.lower()
    assert runs["isolated"].summary["unobserved"] or runs["isolated"].summary["notices"]


def test_M09_a_loop_without_loader_says_that_input_was_not_measured(tmp_path: Path) -> None:
    ran = observe(tmp_path, script("steps.py", *["without_loader"] * 6)).finished()
    found = ran.summary["phases"]["input"]
    assert (found["measured"], found["mean_ms"]) == (False, None)
    assert 'stepscope.phase("input")' in found["note"]
    assert ran.summary["steps"]["count"] == 36
    assert ran.summary["verdict"]["code"] != "NO_BOTTLENECK"


def test_M10_pause_and_off_record_nothing(tmp_path: Path) -> None:
    ran = execute(tmp_path, script("ends.py", "ok"), env={"STEPSCOPE": "0"}).finished()
    assert not (tmp_path / "stepscope-runs").exists()
    assert ran.stderr == ""
