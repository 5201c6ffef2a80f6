"""Loops that a framework runs, transformers.Trainer and lightning.Trainer, beside the same loop by
hand, in one process.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from observing import OF_STEP, Ran, compare, match, observe, phases_of_row, script, together

SCRIPTS = {"trainer": "trainer.py", "lightning": "lit.py"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("frameworks")
    return together(
        {name: lambda name=name: observe(root / name, script(SCRIPTS[name])) for name in SCRIPTS}
    )


STEPS = 24
WARMUP = 4


def frameworks_and_plain(ran: Ran) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    assert ran.measured is not None
    rows, begin = ran.steps(), ran.measured["plain_begin"]
    return (
        [row for row in rows if row["begin_ns"] < begin],
        [row for row in rows if row["begin_ns"] >= begin],
    )


def least_ms(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The least of each phase, over the steps after which nothing was evaluated or saved: a machine
    that is busy while one of the two loops runs lengthens its sleeps, but not all of them.
    """
    steady = [row for row in rows[WARMUP:] if not row["validation_ns"] + row["checkpoint_ns"]]
    return least_of(steady)


def least_of(steady: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    names = {name for row in steady for name in phases_of_row(row)}
    return {name: min(phases_of_row(row).get(name, 0) for row in steady) / 1e6 for name in names}


@pytest.mark.parametrize("name", SCRIPTS)
def test_steps_are_counted(runs: dict[str, Ran], name: str) -> None:
    ran = runs[name].finished()
    assert ran.measured is not None
    assert len(ran.measured["anchors"]) == STEPS
    assert [len(rows) for rows in frameworks_and_plain(ran)] == [STEPS, STEPS]
    assert ran.summary["steps"]["failed"] == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_phases_are_those_of_the_plain_loop(runs: dict[str, Ran], name: str) -> None:
    rows, plain = map(least_ms, frameworks_and_plain(runs[name].finished()))
    compare(rows, plain, sum(plain.values()))


@pytest.mark.parametrize("name", SCRIPTS)
def test_phases_hold_what_the_model_and_the_data_lose(runs: dict[str, Ran], name: str) -> None:
    """A sleep is a lower bound; with the phases of the plain loop the same, no other has it."""
    ran = runs[name].finished()
    assert ran.measured is not None
    for least in map(least_ms, frameworks_and_plain(ran)):
        for phase in ("input", "forward", "backward"):
            assert ran.measured["micro_batches"] * ran.measured[f"{phase}_ms"] <= least[phase]


def test_throughput_is_the_trainers_own(runs: dict[str, Ran]) -> None:
    """transformers divides all samples by the time of the whole loop."""
    ran = runs["trainer"].finished()
    assert ran.measured is not None
    rows, _ = frameworks_and_plain(ran)
    ours = ran.measured["samples"] / (rows[-1]["end_ns"] - rows[0]["begin_ns"]) * 1e9
    assert ours == pytest.approx(ran.measured["samples_per_s"], rel=0.02)


def test_throughput_is_lightnings_own(runs: dict[str, Ran]) -> None:
    """Its ThroughputMonitor goes from the end of its window's first step to that of the last,
    without the validation loop.
    """
    ran = runs["lightning"].finished()
    assert ran.measured is not None
    steps = ran.measured["window"] - 1
    rows = frameworks_and_plain(ran)[0][-steps:]
    took_ns = sum(row["step_time_ns"] - row["validation_ns"] for row in rows)
    took_ns -= rows[-1]["checkpoint_ns"]  # after the last step
    samples = 2 * steps
    assert samples / took_ns * 1e9 == pytest.approx(ran.measured["samples_per_s"], rel=0.02)


@pytest.mark.parametrize("name", SCRIPTS)
def test_validation_and_checkpoint_are_seen(runs: dict[str, Ran], name: str) -> None:
    ran = runs[name].finished()
    rows = ran.steps()
    assert sum(row["validation_ns"] > 0 for row in rows) >= 2
    assert any(row["checkpoint_ns"] > 0 for row in rows)


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_evaluated_and_saved_is_in_no_phase_of_training(
    runs: dict[str, Ran], name: str
) -> None:
    """The evaluation fetches and computes for longer than a step's whole input or forward takes."""
    ran = runs[name].finished()
    assert ran.measured is not None
    rows = frameworks_and_plain(ran)[0]
    evaluated = [row for row in rows[1:] if row["validation_ns"] + row["checkpoint_ns"]]
    assert min(ns for row in evaluated if (ns := row["validation_ns"])) >= (
        ran.measured["evaluation_ms"] * 1e6
    )
    usual, found = least_ms(rows), least_of(evaluated)
    for phase in ("input", "forward", "backward", "optimizer"):  # the last of an epoch fetches less
        assert found[phase] <= usual[phase] + OF_STEP * sum(usual.values()), phase


def test_lightnings_steps_hold_their_anchors(runs: dict[str, Ran]) -> None:
    ran = runs["lightning"].finished()
    assert ran.measured is not None
    match(ran.steps(), ran.measured["anchors"][:-1])
