"""Real gloo runs in which one rank loses a fifth of the step: it is named, with the phase."""

from pathlib import Path
from typing import Any

import pytest
from observing import Ran, observe, torchrun

pytestmark = pytest.mark.alone

# fault and loop: (ranks, the slow one, the phase of the finding, its cause)
RUNS = {
    "input": (2, 1, "input", "input"),
    "backward": (2, 1, "backward", "backward"),
    "optimizer": (2, 0, "optimizer", "optimizer"),
    "between": (2, 1, "other", None),
    "gc": (2, 0, "gc", "gc"),
    "checkpoint": (2, 0, "checkpoint", "checkpoint"),
    "neighbour": (2, 1, None, "CONTENTION"),
    "forward-buffers": (2, 0, "forward", "forward"),
    "forward-accumulate": (2, 1, "forward", "forward"),
    "backward-fsdp": (2, 1, "backward", "backward"),
    "input-fsdp1": (2, 0, "input", "input"),
    "backward-4": (4, 3, "backward", "backward"),
}
HEALTHY = {"none": 2, "none-4": 4}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("stragglers")
    wanted = {name: (ranks, slow) for name, (ranks, slow, *_) in RUNS.items()}
    wanted |= {name: (ranks, 0) for name, ranks in HEALTHY.items()}

    def one(name: str, ranks: int, slow: int) -> Ran:
        fault = name.removesuffix("-4")
        return observe(root / name, torchrun(ranks, "stragglers.py", fault, slow))

    return {name: one(name, *how) for name, how in wanted.items()}  # one after the other: quieter


def culprits(ran: Ran) -> list[dict[str, Any]]:
    return [
        finding
        for finding in ran.finished().summary["findings"]
        if finding["code"] in ("STRAGGLER", "IMBALANCE") and finding["severity"] != "info"
    ]


@pytest.mark.parametrize("name", RUNS)
def test_the_slow_rank_and_its_phase_are_named(runs: dict[str, Ran], name: str) -> None:
    _, slow, phase, cause = RUNS[name]
    found = culprits(runs[name])
    told = [(f["code"], f["rank"], f["phase"], f["cause"], f["title"]) for f in found]
    assert {finding["rank"] for finding in found} == {slow}, told
    worst = found[0]
    assert worst["code"] == "STRAGGLER", told
    assert worst["pattern"] == "persistent", told
    if phase is not None:
        assert worst["phase"] == phase, told
    if cause is not None:
        assert worst["cause"] == cause, told
    # Four transfers a step, or four ranks on two cores: SYNC_BOUND may cost more.
    if name not in ("forward-accumulate", "backward-4"):
        assert runs[name].summary["verdict"] == worst, told
    assert f"rank {slow}" in runs[name].stderr


@pytest.mark.parametrize("name", HEALTHY)
def test_nobody_is_named_in_a_healthy_run(runs: dict[str, Ran], name: str) -> None:
    assert culprits(runs[name]) == []


def test_a_fault_that_passes_is_named_and_withdrawn_while_the_run_goes_on(tmp_path: Path) -> None:
    """And stays in the summary as an episode that ended."""
    ran = observe(tmp_path, torchrun(2, "stragglers.py", "passing", 1, "--steps", 180))
    (found,) = culprits(ran)
    assert (found["code"], found["rank"], found["phase"]) == ("STRAGGLER", 1, "other")
    assert found["ended"] is True
    assert abs(found["first_step"] - 40) <= 5
    assert abs(found["last_step"] - 99) <= 5
    lines = ran.stderr.splitlines()
    said = [line for line in lines if line.startswith(("stepscope: found", "stepscope: over"))]
    assert len(said) == 2, lines
    assert "found STRAGGLER: rank 1" in said[0]
    assert "over: STRAGGLER rank 1" in said[1]


def test_a_pause_on_one_rank_does_not_shift_its_sync_points(tmp_path: Path) -> None:
    """Each seventh reduction is late, before the pause and after it, by the same count."""
    ran = observe(tmp_path, torchrun(2, "paused.py")).finished()
    points = [
        {sync["index"]: sync for step in ran.steps(rank) for sync in step["syncs"]}
        for rank in (0, 1)
    ]
    waits = {i: (s["leave_ns"] - s["ready_ns"]) / 1e6 for i, s in points[0].items()}
    late = [index for index, wait in waits.items() if wait > 20]
    assert len(late) >= 5
    assert {index % 7 for index in late} == {3}, late
    assert any(index > 25 for index in late)
    assert not {*range(20, 25)} & points[0].keys()  # paused: not recorded
    assert {*range(20, 25)} <= points[1].keys()


@pytest.mark.parametrize("told", [True, False])
def test_epochs_in_one_order_are_seen(tmp_path: Path, told: bool) -> None:
    """R11: a DistributedSampler without set_epoch."""
    ran = observe(tmp_path, torchrun(2, "sampled.py", *(["told"] if told else [])))
    codes = [finding["code"] for finding in ran.finished().summary["findings"]]
    assert ("SAME_DATA_ORDER" in codes) is not told
