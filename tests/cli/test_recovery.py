"""kill -9 of any part, at instants from a printed seed: every file stays readable, and the next
command finishes the run with every step that the ring still held.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from cli.commands import (
    Done,
    agent_of,
    is_gone,
    kill,
    member_of,
    only_run,
    script,
    segment_folder,
    start,
    stepscope,
    summary_in,
    wait_for,
)

SEED = int(os.environ.get("STEPSCOPE_TEST_SEED", random.SystemRandom().randrange(10**6)))
PARTS = ("child", "agent", "supervisor", "all")


def printed_steps(out: str) -> int:
    """How many steps the loop says it finished; the last line may be cut."""
    whole = out[: out.rfind("\n") + 1].splitlines()
    return int(whole[-1].split()[1]) + 1 if whole else 0


def collect(process: subprocess.Popen[str], child: int) -> str:
    """stdout until the last process that holds it is gone."""
    assert process.stdout is not None
    out = process.stdout.read()
    process.wait(timeout=60)
    wait_for(lambda: is_gone(child), "the end of the child")
    return out


def assert_readable(run: Path, scratch: Path) -> None:
    """By any SQLite, which may roll a journal back: on a copy, so that nothing is repaired."""
    copy = scratch / "copy"
    shutil.copytree(run, copy)
    database = sqlite3.connect(copy / "run.db")
    try:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        database.close()
        shutil.rmtree(copy)


def one_kill(folder: Path, cpp_loop: str, part: str, at_s: float, steps: int) -> None:
    process = start(folder, "run", cpp_loop, str(steps), "input=0.5", "forward=1")
    run = wait_for(
        lambda: next(iter(folder.glob("stepscope-runs/*/run.db")), None), "run.db"
    ).parent
    child = int(member_of(run)["child_pid"])
    time.sleep(at_s)
    if part in ("agent", "all"):
        folder_now = segment_folder(run)
        if folder_now is not None:
            kill(agent_of(run))
    if part in ("supervisor", "all"):
        kill(process.pid)
    if part in ("child", "all"):
        kill(child)
    finished = printed_steps(collect(process, child))
    assert_readable(run, folder)
    shown = stepscope(folder, "show", str(run), "--json")
    if part == "supervisor":  # the agent lives and ends the run itself
        wait_for(lambda: segment_folder(run) is None, "the end of the run")
        shown = stepscope(folder, "show", str(run), "--json")
    assert shown.code == 0, shown.stderr
    summary = shown.json()
    assert summary["run"]["state"] == "ended"
    counted = summary["steps"]["count"] + summary["steps"]["incomplete"]
    # The step may be in the ring when its line was not printed yet.
    assert finished <= counted <= finished + 1, f"{finished} printed, {counted} in the summary"
    assert summary["stepscope"]["records_dropped"] == 0
    assert segment_folder(run) is None
    if part == "child":
        whole = counted == steps  # it may have ended before the kill
        assert summary["run"]["exit_code"] in ((0, 137) if whole else (137,))


@pytest.mark.fast
@pytest.mark.parametrize("part", PARTS)
def test_one_kill_of_each(tmp_path: Path, cpp_loop: str, part: str) -> None:
    one_kill(tmp_path, cpp_loop, part, at_s=0.4, steps=600)


def test_kills_at_random_instants(tmp_path: Path, cpp_loop: str) -> None:
    print(f"STEPSCOPE_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    for number in range(24):
        part = PARTS[number % len(PARTS)]
        folder = tmp_path / f"{number}-{part}"
        folder.mkdir()
        one_kill(
            folder, cpp_loop, part, at_s=chance.uniform(0, 1.2), steps=chance.randrange(50, 900)
        )


def killed_run(folder: Path, *command: str) -> Path:
    """A run of which nothing lives: its files and segments are as the kill left them."""
    process = start(folder, "run", *command)
    run = wait_for(
        lambda: next(iter(folder.glob("stepscope-runs/*/run.db")), None), "run.db"
    ).parent
    child = int(member_of(run)["child_pid"])
    time.sleep(0.3)
    agent = agent_of(run)
    for pid in (process.pid, agent, child):
        kill(pid)
    process.communicate(timeout=60)
    wait_for(lambda: is_gone(child) and is_gone(agent), "the end of all")
    return run


@pytest.mark.fast
@pytest.mark.parametrize(
    "words", [["show"], ["runs"], ["clean"], ["run", "--quiet", "sleep", "0.5"]]
)
def test_any_later_command_finishes_a_killed_run(
    tmp_path: Path, cpp_loop: str, words: list[str]
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    run = killed_run(here, cpp_loop, "1000000", "forward=2")
    assert not (run / "summary.json").exists()
    done = stepscope(here if words == ["show"] else elsewhere, *words)
    assert done.code == 0, done.stderr
    wait_for((run / "summary.json").exists, "a summary")
    wait_for(lambda: segment_folder(run) is None, "the segments' removal")
    assert summary_in(run)["run"]["state"] == "ended"
    assert summary_in(run)["steps"]["count"] > 10
    assert {path.name for path in run.iterdir()} == {"run.db", "summary.json", "summary.txt"}


@pytest.mark.fast
def test_two_commands_at_once_finish_it_once(tmp_path: Path, cpp_loop: str) -> None:
    run = killed_run(tmp_path, cpp_loop, "1000000", "forward=2")
    shows = [start(tmp_path, "show", str(run), "--json") for _ in range(4)]
    ends = []
    for process in shows:
        out, err = process.communicate(timeout=60)
        ends.append(Done(process.returncode, out, err))
    assert [end.code for end in ends] == [0] * 4, ends
    assert len({end.json()["steps"]["count"] for end in ends}) == 1


@pytest.mark.fast
def test_a_reboot_took_the_segments(tmp_path: Path, cpp_loop: str) -> None:
    """run.db is all that is left: what was committed is shown."""
    process = start(tmp_path, "run", cpp_loop, "1000000", "forward=2")
    run = wait_for(
        lambda: next(iter(tmp_path.glob("stepscope-runs/*/run.db")), None), "run.db"
    ).parent
    child, agent = int(member_of(run)["child_pid"]), agent_of(run)
    time.sleep(2.2)
    for pid in (process.pid, agent, child):
        kill(pid)
    process.communicate(timeout=60)
    wait_for(lambda: is_gone(child) and is_gone(agent), "the end of all")
    folder = segment_folder(run)
    assert folder is not None
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    shown = stepscope(tmp_path, "show", "--json")
    assert shown.code == 0, shown.stderr
    assert shown.json()["run"]["state"] == "ended"
    assert shown.json()["steps"]["count"] > 100
    assert (run / "summary.txt").exists()


@pytest.mark.fast
def test_hostile_files_in_the_segment_folder_harm_nobody(tmp_path: Path, cpp_loop: str) -> None:
    run = killed_run(tmp_path, cpp_loop, "1000000", "forward=2")
    folder = segment_folder(run)
    assert folder is not None
    chance = random.Random(20261129)
    for name in ("seg-1-2", "seg-999999999999-zz", "member-x", "member-77", "boot.log"):
        (folder / name).write_bytes(chance.randbytes(5000))
    (folder / "seg-7-7").symlink_to("/etc/passwd")
    shown = stepscope(tmp_path, "show", "--json")
    assert shown.code == 0, shown.stderr
    assert shown.json()["steps"]["count"] > 10
    assert not folder.exists()
    assert Path("/etc/passwd").exists()


@pytest.mark.fast
def test_segments_that_a_child_left_behind_are_waited_for_briefly(
    tmp_path: Path, cpp_loop: str
) -> None:
    child = script(tmp_path, f"{cpp_loop} 100000 forward=2 > /dev/null 2>&1 & echo $!; sleep 1")
    process = start(tmp_path, "run", child)
    out, _ = process.communicate(timeout=60)
    loop = int(out.split()[0])
    try:
        assert process.returncode == 0
        assert not is_gone(loop)
        assert summary_in(only_run(tmp_path))["steps"]["count"] > 10
    finally:
        kill(loop)
