"""trace_step: a block is a step, under `stepscope run` and without it."""

from pathlib import Path

import pytest
from observing import (
    Ran,
    check_phases_add_up,
    compare_steps,
    execute,
    loop_of,
    match,
    observe,
    script,
    together,
    total_of,
)

NAMED = ("input", "forward", "backward", "optimizer", "validation")
LOOPS = [
    "plain",
    "work_between_blocks",
    "accumulation_inside",
    "block_each_micro_batch",
    "nested",
    "left_by_an_exception",
    "without_loader_and_model",
    "held_manager",
    "validation",
    "paused",
]


def only_run(folder: Path) -> Path:
    runs = list((folder / "stepscope-runs").iterdir())
    assert len(runs) == 1
    return runs[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("blocks")
    found = together(
        {
            "under_run": lambda: observe(root / "under_run", script("blocks.py")),
            "alone": lambda: execute(root / "alone", script("blocks.py")),
            "off": lambda: execute(
                root / "off", script("blocks.py", "plain"), env={"STEPSCOPE": "0"}
            ),
        }
    )
    if (root / "alone" / "stepscope-runs").exists():
        found["alone"].run = only_run(root / "alone")
    return found


@pytest.mark.fast
@pytest.mark.parametrize("how", ["under_run", "alone"])
@pytest.mark.parametrize("name", LOOPS)
def test_a_block_is_a_step(runs: dict[str, Ran], how: str, name: str) -> None:
    ran = runs[how].finished()
    steps, failed = loop_of(ran, name)
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    assert not [row["step"] for row in rows if row["failed"]]
    assert all(row["failed"] for row in match(ran.steps(), failed))


@pytest.mark.parametrize("name", LOOPS)
def test_phases_are_those_of_the_script(runs: dict[str, Ran], name: str) -> None:
    ran = runs["under_run"].finished()
    steps, _ = loop_of(ran, name)
    whole = steps[1:]
    rows = match(ran.steps(), [step["anchor"] for step in whole])
    if name == "paused":
        pairs = [(row, step) for row, step in zip(rows, whole, strict=True) if not row["paused"]]
        assert len(pairs) >= len(whole) - 1
        rows, whole = [row for row, _ in pairs], [step for _, step in pairs]
    compare_steps(rows, whole, NAMED)


def test_step_boundaries_are_the_exits_of_blocks(runs: dict[str, Ran]) -> None:
    ran = runs["under_run"].finished()
    for name in ("plain", "work_between_blocks", "accumulation_inside"):
        steps, _ = loop_of(ran, name)
        for row, step in list(
            zip(match(ran.steps(), [s["anchor"] for s in steps]), steps, strict=True)
        )[1:]:
            allowed = 0.05 * total_of(step)
            assert abs(row["begin_ns"] - step["begin"]) < allowed
            assert abs(row["end_ns"] - step["end"]) < allowed


def test_work_between_blocks_is_told_apart(runs: dict[str, Ran]) -> None:
    ran = runs["under_run"].finished()
    steps, _ = loop_of(ran, "work_between_blocks")
    for row, step in list(
        zip(match(ran.steps(), [s["anchor"] for s in steps]), steps, strict=True)
    )[1:]:
        slept = total_of(step) - sum(step["phases"].values())
        assert row["other_between_steps_ns"] == pytest.approx(slept, abs=0.05 * total_of(step))


def test_nested_blocks_are_said_once(runs: dict[str, Ran]) -> None:
    ran = runs["under_run"].finished()
    said = [
        line
        for line in ran.stderr.splitlines()
        if "nested" in line.lower() or "inside" in line.lower()
    ]
    assert len(said) == 1, ran.stderr


def test_alone_prints_the_card_at_exit_and_leaves_the_files(runs: dict[str, Ran]) -> None:
    ran = runs["alone"].finished()
    assert ran.run.name.startswith("blocks-")
    assert ran.stdout == ""
    card = (ran.run / "summary.txt").read_text().strip()
    assert card in ran.stderr
    assert {file.name for file in ran.run.iterdir()} == {"summary.json", "summary.txt", "run.db"}
    check_phases_add_up(ran.summary)
    expected = [loop_of(ran, name) for name in LOOPS]
    assert ran.summary["steps"]["count"] >= sum(len(steps) for steps, _ in expected)
    assert ran.summary["steps"]["failed"] == sum(len(failed) for _, failed in expected)


def test_switched_off_leaves_nothing(runs: dict[str, Ran]) -> None:
    ran = runs["off"].finished()
    assert (ran.stdout, ran.stderr) == ("", "")
    assert [file.name for file in ran.folder.iterdir()] == ["measured.json"]
