"""Two ranks, of which one loses time: it is in that rank's phase, and the other's wait is sync."""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from observing import (
    STEPSCOPE,
    Ran,
    check_phases_add_up,
    execute,
    match,
    observe,
    script,
    together,
    torchrun,
)

pytestmark = pytest.mark.alone

# loop of ranks.py: (rank that loses time, the phase it is in)
LOOPS = {
    "input": (1, "input"),
    "forward": (1, "forward"),
    "backward": (1, "backward"),
    "between": (1, "other"),
    "forward_of_rank_0_with_buffers": (0, "forward"),
    "input_of_rank_0_with_buffers": (0, "input"),
    "input_with_buffers": (1, "input"),
    "accumulation_that_syncs_each_time": (1, "forward"),
    "accumulation_without_sync": (1, "forward"),
    "backward_with_unused_parameters": (1, "backward"),
    "backward_with_static_graph": (1, "backward"),
    "input_compiled_inside": (1, "input"),
    "input_compiled_outside": (1, "input"),
    "forward_under_fsdp": (1, "forward"),
    "backward_under_fsdp": (1, "backward"),
    "own_all_reduce": (1, "other"),
}


def measured_by(ran: Ran, rank: int) -> dict[str, Any]:
    return json.loads((ran.folder / f"measured.json.{rank}").read_text())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return observe(tmp_path_factory.mktemp("two"), torchrun(2, "ranks.py"))


@pytest.mark.parametrize("name", LOOPS)
def test_steps_are_those_of_the_script_on_each_rank(two: Ran, name: str) -> None:
    two.finished()
    for rank in (0, 1):
        steps = measured_by(two, rank)["loops"][name]
        rows = match(two.steps(rank), [step["anchor"] for step in steps])
        numbers = [row["step"] for row in rows]
        assert numbers == list(range(numbers[0], numbers[0] + len(steps)))


@pytest.mark.parametrize("name", LOOPS)
def test_the_wait_is_sync_on_the_other_rank_and_work_on_the_slow_one(two: Ran, name: str) -> None:
    """Compared with what the slow rank lost by its own measure; medians, for gloo's own time
    varies.
    """
    two.finished()
    slow, phase = LOOPS[name]

    def of(rank: int, column: str) -> float:
        anchors = [step["anchor"] for step in measured_by(two, rank)["loops"][name]][2:]
        return median(row[f"{column}_ns"] for row in match(two.steps(rank), anchors)) / 1e6

    lost = measured_by(two, slow)["lost_ms"]
    table = {
        rank: {
            p: round(of(rank, p), 1)
            for p in ("input", "forward", "backward", "sync", "optimizer", "other")
        }
        for rank in (0, 1)
    }
    assert table[slow][phase] >= 0.95 * lost, table
    waited = table[1 - slow]["sync"] - table[slow]["sync"]  # both also transfer
    assert 0.7 * lost <= waited <= 1.3 * lost, table
    if "fsdp" not in name and name != "own_all_reduce":  # these transfer many times a step
        assert table[slow]["sync"] <= 0.3 * lost, table
    for name_of_phase, ms in table[1 - slow].items():
        if name_of_phase != "sync":
            assert ms <= 0.3 * lost, (name_of_phase, table)


@pytest.mark.parametrize("name", LOOPS)
def test_sync_points_tell_who_came_last(two: Ran, name: str) -> None:
    """Joined by group and number alone, they cover what both ranks waited, and of those that cost
    something the rank with the shorter wait is the slow one.
    """
    two.finished()
    slow, _ = LOOPS[name]
    lost_ns = measured_by(two, slow)["lost_ms"] * 1e6
    points: list[dict[Any, dict[str, Any]]] = []
    for rank in (0, 1):
        anchors = [step["anchor"] for step in measured_by(two, rank)["loops"][name]]
        rows = match(two.steps(rank), anchors)
        found = [sync for row in rows for sync in row["syncs"]]
        assert all(sync["members"] == 2 and sync["together"] for sync in found), found
        assert all(a["leave_ns"] <= b["ready_ns"] for a, b in pairwise(found))
        points.append({(sync["group"], sync["index"]): sync for sync in found})
        assert len(points[rank]) == len(found)  # no number twice
    assert points[0].keys() == points[1].keys()
    waits = {
        key: [points[rank][key]["leave_ns"] - points[rank][key]["ready_ns"] for rank in (0, 1)]
        for key in points[0]
    }
    costly = {key: wait for key, wait in waits.items() if abs(wait[0] - wait[1]) >= 0.2 * lost_ns}
    assert len(costly) >= len(rows) - 2  # in the first, ready is not yet known
    late = [wait.index(min(wait)) for wait in costly.values()]
    assert late.count(slow) >= 0.85 * len(late), waits


def test_rows_add_up(two: Ran) -> None:
    for row in two.finished().rows.steps:
        phases = sum(row[f"{name}_ns"] for name in two.summary["phases"] if f"{name}_ns" in row)
        assert phases + sum(row["user_phases_ns"].values()) == row["step_time_ns"]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("ways")
    loop = ("--steps", 34, "forward")
    return together(
        {
            "torchrun": lambda: observe(root / "torchrun", torchrun(2, "ranks.py", *loop)),
            "spawn": lambda: observe(root / "spawn", script("ranks.py", "--spawn", 2, *loop)),
            "accelerate": lambda: observe(
                root / "accelerate",
                [
                    sys.executable,
                    "-m",
                    "accelerate.commands.launch",
                    "--cpu",
                    "--num_processes",
                    "1",
                    "--num_machines",
                    "1",
                    "--mixed_precision",
                    "no",
                    "--dynamo_backend",
                    "no",
                    *script("accelerated.py")[1:],
                ],
            ),
        }
    )


@pytest.mark.parametrize("way", ["torchrun", "spawn"])
def test_summary_of_two_ranks(ways: dict[str, Ran], way: str) -> None:
    ran = ways[way].finished()
    summary = ran.summary
    check_phases_add_up(summary)
    assert summary["run"]["ranks"] == 2
    assert [rank["rank"] for rank in summary["ranks"]] == [0, 1]
    assert [rank["steps"] for rank in summary["ranks"]] == [34, 34]
    assert summary["steps"]["count"] == 34
    first, second = (rank["phases"] for rank in summary["ranks"])
    lost = measured_by(ran, 1)["lost_ms"]
    assert first["sync"]["mean_ms"] >= 0.85 * lost
    assert second["sync"]["mean_ms"] <= 0.3 * lost
    assert second["forward"]["mean_ms"] >= 0.95 * lost
    for phase in ("input", "forward", "backward", "sync", "optimizer"):
        both = (first[phase]["mean_ms"] + second[phase]["mean_ms"]) / 2
        assert summary["phases"][phase]["mean_ms"] == pytest.approx(both, rel=0.02, abs=0.02)
    steady = measured_by(ran, 0)["loops"]["forward"][summary["steps"]["warmup"] :]
    seconds = sum(step["end"] - step["begin"] for step in steady) / 1e9
    # samples of both ranks, two a step each
    assert summary["throughput"]["samples_per_s"] == pytest.approx(
        4 * len(steady) / seconds, rel=0.05
    )


@pytest.mark.parametrize("way", ["torchrun", "spawn"])
def test_waiting_is_never_a_finding(ways: dict[str, Ran], way: str) -> None:
    """SYNC_BOUND is transfer, never one rank's waiting: here the other rank is merely late."""
    findings = ways[way].finished().summary["findings"]
    assert not [f for f in findings if f["code"] == "SYNC_BOUND" and f["confidence"] == "certain"]


def test_the_card_has_a_line_a_rank(ways: dict[str, Ran]) -> None:
    ran = ways["torchrun"].finished()
    card = (ran.run / "summary.txt").read_text()
    assert ran.stderr.count(card.strip()) == 1
    lines = [line.split() for line in card.splitlines()]
    for rank in ("0", "1"):
        assert [line for line in lines if rank in line[:2] and len(line) >= 8], card


def test_under_accelerate(ways: dict[str, Ran]) -> None:
    ran = ways["accelerate"].finished()
    assert ran.measured is not None
    steps = ran.measured["steps"]
    assert ran.summary["steps"]["count"] == len(steps)
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    assert sum(row["optimizer_ns"] > 0 for row in rows) == len(steps)


def once_a_rank(folder: Path, ranks: int, *arguments: object, observed: int) -> list[Ran]:
    """`stepscope run python ranks.py` at once for each rank, in one folder, as srun starts it; the
    ranks from `observed` on without stepscope.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
    }

    def one(rank: int) -> Ran:
        command = script("ranks.py", *arguments)
        if rank < observed:
            command = [STEPSCOPE, "run", *command]
        of_rank = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        return execute(folder, command, env=env | of_rank).finished()

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(one, range(ranks)))


def only_run(folder: Path) -> Path:
    runs = list((folder / "stepscope-runs").iterdir())
    assert len(runs) == 1
    assert {file.name for file in runs[0].iterdir()} == {"run.db", "summary.json", "summary.txt"}
    return runs[0]


def test_E09_once_a_rank_is_one_run_in_one_folder_with_one_card(tmp_path: Path) -> None:
    ran = once_a_rank(tmp_path, 4, "--steps", 12, "forward", observed=4)
    run = only_run(tmp_path)
    summary = json.loads((run / "summary.json").read_text())
    assert [rank["rank"] for rank in summary["ranks"]] == [0, 1, 2, 3]
    assert [rank["steps"] for rank in summary["ranks"]] == [12] * 4
    card = (run / "summary.txt").read_text().strip()
    assert [card in each.stderr for each in ran] == [True, False, False, False]


def test_sync_of_one_rank_alone_is_not_judged(tmp_path: Path) -> None:
    """The other rank is not observed: its lateness cannot be told from transfer."""
    once_a_rank(tmp_path, 2, "--steps", 34, "forward", observed=1)
    summary = json.loads((only_run(tmp_path) / "summary.json").read_text())
    assert summary["run"]["world_size"] == 2
    assert [rank["rank"] for rank in summary["ranks"]] == [0]
    findings = {finding["code"]: finding for finding in summary["findings"]}
    assert "SYNC_BOUND" not in findings
    assert "NO_BOTTLENECK" not in findings
    gaps = findings["INSUFFICIENT_DATA"]["not_measured"]
    assert any("no agent reports (1)" in gap for gap in gaps), gaps
