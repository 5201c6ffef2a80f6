"""Real gloo runs in which one rank loses a fifth of the step: it is named, with the phase."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from observing import Ran, observe, together, torchrun

pytestmark = pytest.mark.alone

STEPS = 45  # of a stage

# run: stages one after the other, in which never the same rank twice running. A stage: (fault and
# loop, the slow rank, the phase of the finding, its cause); no rank: healthy
RUNS: dict[str, list[tuple[str, int | None, str | None, str | None]]] = {
    "plain": [
        ("none", None, None, None),
        ("input", 1, "input", "input"),
        ("optimizer", 0, "optimizer", "optimizer"),
        ("backward", 1, "backward", "backward"),
        ("gc", 0, "gc", "gc"),
        ("between", 1, "other", "other"),
        ("checkpoint", 0, "checkpoint", "checkpoint"),
        ("faults", 1, "other", "page_faults"),
        ("forward", 0, "forward", "forward"),
        ("none", None, None, None),
    ],
    "loops": [
        ("forward-buffers", 0, "forward", "forward"),
        ("forward-accumulate", 1, "forward", "forward"),
        ("backward-fsdp", 0, "backward", "backward"),
        ("input-fsdp1", 1, "input", "input"),
    ],
    "neighbour": [("neighbour", 1, None, "CONTENTION")],
    "four": [("none", None, None, None), ("backward", 3, "backward", "backward")],
}
RANKS = {"four": 4}
AT_ONCE = [["plain"], ["loops", "four"], ["neighbour"]]  # the rest mostly sleeps
NEEDS_A_CORE = ("gc", "page_faults")  # the others sleep
NEAR = 8  # steps: how well the beginning and the end of a fault are told

SLOW = [
    (run, number)
    for run, stages in RUNS.items()
    for number, stage in enumerate(stages)
    if stage[1] is not None
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("stragglers")

    def one(name: str) -> Ran:
        stages = [f"{fault}@{0 if slow is None else slow}" for fault, slow, *_ in RUNS[name]]
        command = torchrun(RANKS.get(name, 2), "stragglers.py", *stages, "--steps", STEPS)
        return observe(root / name, command)

    ran: dict[str, Ran] = {}
    for names in AT_ONCE:
        ran |= together({name: lambda name=name: one(name) for name in names})
    return ran


def culprits(ran: Ran) -> list[dict[str, Any]]:
    found = [
        finding
        for finding in ran.finished().summary["findings"]
        if finding["code"] in ("STRAGGLER", "IMBALANCE") and finding["severity"] != "info"
    ]
    return sorted(found, key=lambda finding: finding["first_step"])


def told(ran: Ran) -> list[Any]:
    words = ("code", "rank", "phase", "cause", "first_step", "last_step", "ended")
    return [tuple(finding[word] for word in words) for finding in culprits(ran)]


@pytest.mark.parametrize(("run", "number"), SLOW, ids=lambda value: str(value))
def test_the_slow_rank_and_its_phase_are_named(runs: dict[str, Ran], run: str, number: int) -> None:
    _, slow, phase, cause = RUNS[run][number]
    begin, end = number * STEPS, (number + 1) * STEPS
    middle = (begin + end) // 2
    said = told(runs[run])
    (found,) = [f for f in culprits(runs[run]) if f["first_step"] <= middle <= f["last_step"]]
    assert (found["code"], found["rank"], found["pattern"]) == ("STRAGGLER", slow, "persistent")
    assert abs(found["first_step"] - begin) <= NEAR or number == 0, said
    last = number + 1 == len(RUNS[run])
    assert found["ended"] is not last, said
    assert last or abs(found["last_step"] - (end - 1)) <= NEAR, said
    if phase is not None:
        assert found["phase"] == phase, said
    shown = {one["name"]: one["value"] for one in found["evidence"]}
    if cause in NEEDS_A_CORE and shown["cpu_wait_share"] >= 0.05:
        cause = "CONTENTION"  # this machine has other work: that is then the truth
    assert found["cause"] == cause, said


@pytest.mark.parametrize("run", RUNS)
def test_nobody_else_is_named_nor_anybody_in_healthy_steps(runs: dict[str, Ran], run: str) -> None:
    stages = RUNS[run]
    slow = [stage[1] for stage in stages if stage[1] is not None]
    assert [finding["rank"] for finding in culprits(runs[run])] == slow, told(runs[run])
    assert runs[run].summary["verdict"]["code"] == "STRAGGLER" or run in ("loops", "four")


def test_each_is_named_and_withdrawn_while_the_run_goes_on(runs: dict[str, Ran]) -> None:
    """A line when it opens and one when it closes, in their order."""
    lines = runs["plain"].finished().stderr.splitlines()
    for rank in (0, 1):
        said = [
            line.split(":")[1].strip()
            for line in lines
            if line.startswith((
                f"stepscope: found STRAGGLER: rank {rank} ",
                f"stepscope: over: STRAGGLER rank {rank}",
            ))
        ]  # fmt: skip
        stages = sum(slow == rank for _, slow, *_ in RUNS["plain"])
        assert len(said) == 2 * stages, lines
        assert all(one != next_one for one, next_one in pairwise(said)), lines


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("others")
    commands = {
        "paused": torchrun(2, "paused.py"),
        "told": torchrun(2, "sampled.py", "told"),
        "untold": torchrun(2, "sampled.py"),
    }
    return together(
        {n: lambda n=n, c=command: observe(root / n, c) for n, command in commands.items()}
    )


def test_a_pause_on_one_rank_does_not_shift_its_sync_points(others: dict[str, Ran]) -> None:
    """Each seventh reduction is late, before the pause and after it, by the same count."""
    ran = others["paused"].finished()
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
def test_epochs_in_one_order_are_seen(others: dict[str, Ran], told: bool) -> None:
    """R11: a DistributedSampler without set_epoch."""
    ran = others["told" if told else "untold"]
    codes = [finding["code"] for finding in ran.finished().summary["findings"]]
    assert ("SAME_DATA_ORDER" in codes) is not told
