"""Loops of every shape: each step that the script knows of is one step, no more and no fewer, with
its own phases.
"""

from itertools import pairwise
from pathlib import Path

import pytest
from observing import Ran, compare_steps, loop_of, match, observe, script, steps_run

# What these spend in the named phases is compared too; in the others only steps are counted.
LOOPS = {
    "two_epochs": ("input", "forward", "backward", "optimizer"),
    "accumulation": ("input", "forward", "backward", "optimizer"),
    "two_optimizers": ("input", "forward", "backward", "optimizer"),
    "gan": ("input", "forward", "backward", "optimizer"),
    "two_loaders_zip": ("input", "forward", "backward", "optimizer"),
    "lbfgs": ("input", "forward", "backward", "optimizer"),
    "lbfgs_without_loader": ("forward", "backward", "optimizer"),
    "loaders_inside_loaders": ("input", "forward", "backward", "optimizer"),
    "loader_inside_a_dataset": ("input", "forward", "backward", "optimizer"),
    "model_inside_a_dataset": ("input", "forward", "backward", "optimizer", "validation"),
    "iterable_without_length": ("input", "forward", "backward", "optimizer"),
    "prefetching": ("input", "forward", "backward", "optimizer"),
    "peeks": ("input", "forward", "backward", "optimizer"),
    "without_loader": ("input", "forward", "backward", "optimizer"),
    "without_loader_but_after_one": ("input", "forward", "backward", "optimizer"),
    "functional_with_loader": ("input", "forward", "backward", "optimizer"),
    "functional_without_loader": ("input", "forward", "backward", "optimizer"),
    "input_phase_without_loader": ("input", "forward", "backward", "optimizer"),
    "user_phases": (
        "input",
        "forward",
        "backward",
        "optimizer",
        "checkpoint",
        "augment",
        "log metrics",
    ),
    "workers_fork": ("input", "forward", "backward", "optimizer"),
    "workers_fork_persistent": ("input", "forward", "backward", "optimizer"),
    "workers_spawn": ("input", "forward", "backward", "optimizer"),
    "grad_scaler_skips": ("input", "forward", "backward"),
    "caught_exceptions": ("input", "forward", "backward", "optimizer"),
    "teacher": ("input", "forward", "backward", "optimizer", "validation"),
    "breaks_out": ("input", "forward", "backward", "optimizer"),
    "validation": ("input", "forward", "backward", "optimizer", "validation"),
    "validation_without_eval": ("input", "forward", "backward", "optimizer", "validation"),
    "validation_with_gradients": ("input", "forward", "backward", "optimizer", "validation"),
    "validation_and_never_train_again": ("input", "forward", "backward", "optimizer", "validation"),
    "validation_in_mid_epoch": ("input", "forward", "backward", "optimizer", "validation"),
    "frozen_batch_norm": ("input", "forward", "backward", "optimizer", "validation"),
    "sanity_check_first": ("input", "forward", "backward", "optimizer", "validation"),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return steps_run(tmp_path_factory.mktemp("steps"))


@pytest.mark.fast
@pytest.mark.parametrize("name", LOOPS)
def test_steps_are_those_of_the_script(ran: Ran, name: str) -> None:
    steps, failed = loop_of(ran, name)
    rows = ran.steps()
    well = match(rows, [step["anchor"] for step in steps])
    assert not [row["step"] for row in well if row["failed"]]
    ill = match(rows, failed)
    assert all(row["failed"] for row in ill)
    # and none besides: no step lies wholly between the first and the last of them that the script
    # does not know
    numbers = sorted(row["step"] for row in (*well, *ill))
    assert numbers == list(range(numbers[0], numbers[0] + len(steps) + len(failed)))


@pytest.mark.parametrize("name", LOOPS)
def test_phases_are_those_of_the_script(ran: Ran, name: str) -> None:
    steps, _ = loop_of(ran, name)
    # The first step also holds what lay before it.
    whole = steps[1:]
    if name.endswith("without_loader"):  # there a step ends at forward: it has the next one's input
        whole = [
            {**step, "phases": step["phases"] | {"input": following["phases"].get("input", 0)}}
            for step, following in pairwise(whole)
        ]
    rows = match(ran.steps(), [step["anchor"] for step in whole])
    compare_steps(rows, whole, LOOPS[name])


def test_a_loop_in_a_thread_is_followed(tmp_path: Path) -> None:
    ran = observe(tmp_path, script("steps.py", "in_a_thread")).finished()
    steps, _ = loop_of(ran, "in_a_thread")
    assert ran.summary["steps"]["count"] == len(steps)
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    compare_steps(rows[1:], steps[1:], ("input", "forward", "backward", "optimizer"))


def test_a_root_that_comes_late_is_found_within_61_steps(tmp_path: Path) -> None:
    """Classes without a root are watched for 4 of 61 backwards."""
    ran = observe(tmp_path, script("steps.py", "late_root")).finished()
    steps, _ = loop_of(ran, "late_root")
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    last = slice(20 + 61, None)
    compare_steps(rows[last], steps[last], ("input", "forward", "backward", "optimizer"))


def test_every_row_adds_up(ran: Ran) -> None:
    for row in ran.steps():
        phases = [value for name, value in row.items() if name in ALL_PHASES]
        assert sum(phases) + sum(row["user_phases_ns"].values()) == row["step_time_ns"], row


def test_the_summary_counts_what_the_rows_hold(ran: Ran) -> None:
    expected = [loop_of(ran, name) for name in LOOPS]
    steps = ran.summary["steps"]
    assert steps["count"] == sum(len(well) for well, _ in expected)
    assert steps["failed"] == sum(len(failed) for _, failed in expected)
    assert ran.summary["stepscope"]["records_dropped"] == 0


def test_accumulation_counts_its_batches(ran: Ran) -> None:
    steps, _ = loop_of(ran, "accumulation")
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    assert [(row["fetches"], row["backwards"], row["optimizer_steps"]) for row in rows][1] == (
        4,
        4,
        1,
    )
    assert rows[1]["samples"] == 8


def test_user_phases_are_rows_of_their_own(ran: Ran) -> None:
    phases = ran.summary["phases"]
    assert "augment" in phases
    assert "log metrics" in phases
    assert phases["augment"]["measured"]


ALL_PHASES = [
    f"{name}_ns"
    for name in (
        "input",
        "h2d",
        "forward",
        "backward",
        "sync",
        "optimizer",
        "checkpoint",
        "validation",
        "compile",
        "gc",
        "profiler",
        "other",
    )
]
