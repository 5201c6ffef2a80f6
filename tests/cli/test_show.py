"""show, runs, clean: what they find, what they say when they do not, and what they leave alone."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
from cli.commands import (
    agent_of,
    kill,
    member_of,
    only_run,
    read_until,
    segment_folder,
    start,
    stepscope,
    summary_in,
    wait_for,
)
from observing import STEPSCOPE

pytestmark = pytest.mark.fast


@pytest.fixture
def two_runs(tmp_path: Path) -> Path:
    for name, code in (("first", 3), ("second", 4)):
        done = stepscope(
            tmp_path, "run", "--run-id", f"id-{name}", "--name", name, "sh", "-c", f"exit {code}"
        )
        assert done.code == code
        time.sleep(1.1)  # runs are ordered by their start, which is a label in seconds
    return tmp_path


def test_show_finds_a_run_by_folder_name_id_or_takes_the_newest(two_runs: Path) -> None:
    for words, code in [
        ([], 4),
        (["first"], 3),
        (["id-first"], 3),
        (["stepscope-runs/first"], 3),
        (["stepscope-runs/first/"], 3),
        ([str(two_runs / "stepscope-runs" / "second")], 4),
    ]:
        shown = stepscope(two_runs, "show", *words, "--json")
        assert shown.code == 0, shown.stderr
        assert shown.json()["run"]["exit_code"] == code, words
    inside = stepscope(two_runs / "stepscope-runs" / "first", "show", ".", "--json")
    assert inside.json()["run"]["exit_code"] == 3


def test_show_prints_the_card_on_stdout(two_runs: Path) -> None:
    shown = stepscope(two_runs, "show", "first")
    assert shown.code == 0
    assert shown.stderr == ""
    assert shown.stdout.startswith("INSUFFICIENT_DATA")
    unicode = stepscope(two_runs, "show", "first", env={"LC_ALL": "C.UTF-8"}).stdout
    assert unicode == (two_runs / "stepscope-runs/first/summary.txt").read_text()
    ascii_only = stepscope(two_runs, "show", "first", env={"LC_ALL": "C"}).stdout
    assert ascii_only.isascii()


def test_show_json_is_the_file(two_runs: Path) -> None:
    shown = stepscope(two_runs, "show", "second", "--json").stdout
    assert shown == (two_runs / "stepscope-runs/second/summary.json").read_text()


def test_what_is_kept_of_an_ended_run_is_what_its_steps_say(tmp_path: Path) -> None:
    """`show` takes the summary out of run.db; without it everything is judged again, alike."""
    run = tmp_path / "kept"
    done = stepscope(
        tmp_path, "simulate", "--ranks", "6", "--nodes", "2", "--steps", "2400", "--quiet",
        "--fault", "rank=5 phase=input add=40ms from=400", "--run-dir", str(run),
    )  # fmt: skip
    assert done.code == 0, done.stderr
    kept = [stepscope(tmp_path, "show", str(run), *words).stdout for words in ([], ["--json"])]
    assert "rank 5" in kept[0].splitlines()[0]
    with contextlib.closing(sqlite3.connect(run / "run.db")) as database, database:
        assert database.execute("SELECT count(*) FROM summary").fetchone() == (1,)
        database.execute("DELETE FROM summary")
    (run / "summary.json").unlink()
    again = [stepscope(tmp_path, "show", str(run), *words).stdout for words in ([], ["--json"])]
    assert again == kept


def test_a_run_that_was_moved_says_where_it_is(two_runs: Path) -> None:
    moved = two_runs / "elsewhere"
    (two_runs / "stepscope-runs" / "first").rename(moved)
    card = stepscope(two_runs, "show", str(moved)).stdout
    assert str(moved) in "".join(card.split()), "a long path goes on in the next line"


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("nowhere", "no run nowhere"),
        ("no/such/folder", "no run no/such/folder"),
        ("empty", "not a run's folder"),
        ("file.txt", "is a file"),
        ("\x1b[31mred", "?[31mred"),
    ],
)
def test_show_says_what_is_wrong(tmp_path: Path, run: str, why: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("x")
    shown = stepscope(tmp_path, "show", run)
    assert shown.code == 2
    assert shown.stdout == ""
    assert why in shown.stderr
    assert "hint:" in shown.stderr


def test_nothing_to_show(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path)}
    shown = stepscope(tmp_path, "show", env=env)
    assert shown.code in (0, 2)  # a fallback place elsewhere may hold runs
    if shown.code == 2:
        assert "stepscope run" in shown.stderr


def test_output_that_goes_nowhere_is_no_success(two_runs: Path) -> None:
    with open("/dev/full", "wb") as full:
        for words in (["show"], ["show", "--json"], ["runs"]):
            done = subprocess.run(
                [STEPSCOPE, *words], cwd=two_runs, stdout=full, stderr=subprocess.PIPE, text=True
            )
            assert done.returncode == 2, words
            assert done.stderr.startswith("stepscope: cannot write to stdout: ")
        ran = subprocess.run(
            [STEPSCOPE, "run", "--quiet", "--json", "true"], cwd=two_runs, stdout=full, check=False
        )
        assert ran.returncode == 0, "the child's"


@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "folder"])
def test_a_damaged_database(two_runs: Path, damage: str) -> None:
    run = two_runs / "stepscope-runs" / "first"
    database = run / "run.db"
    whole = database.read_bytes()
    database.unlink()
    if damage == "folder":
        database.mkdir()
    else:
        database.write_bytes(
            {"truncate": whole[:5000], "garbage": b"\xff" * 9000, "empty": b""}[damage]
        )
    shown = stepscope(two_runs, "show", "first")
    assert shown.code == 0
    assert "run.db" in shown.stderr
    assert shown.stdout.startswith("INSUFFICIENT_DATA")
    (run / "summary.json").unlink()
    (run / "summary.txt").unlink()
    shown = stepscope(two_runs, "show", "first")
    assert shown.code == 2
    assert "run.db" in shown.stderr
    assert "terminate" not in shown.stderr
    listed = stepscope(two_runs, "runs", "--json").json()["runs"]
    assert {row["name"]: row["state"] for row in listed} == {"first": "damaged", "second": "ended"}


def test_runs_lists_newest_first(two_runs: Path) -> None:
    listed = stepscope(two_runs, "runs", str(two_runs / "stepscope-runs"))
    assert listed.code == 0
    lines = listed.stdout.splitlines()
    assert lines[0].split() == ["name", "started", "duration", "ranks", "steps", "verdict"]
    assert [line.split()[0] for line in lines[1:]] == ["second", "first"]
    rows = stepscope(two_runs, "runs", "--json").json()
    assert rows["schema"] == 1
    ours = [row for row in rows["runs"] if row["folder"].startswith(str(two_runs))]
    assert [(row["name"], row["exit_code"], row["state"]) for row in ours] == [
        ("second", 4, "ended"),
        ("first", 3, "ended"),
    ]
    assert stepscope(two_runs, "runs", "nowhere").code == 2
    (two_runs / "none").mkdir()
    empty = stepscope(two_runs, "runs", "none")
    assert (empty.code, empty.stdout) == (0, "")
    assert "stepscope run" in empty.stderr


def test_clean_removes_runs_only_when_asked(two_runs: Path) -> None:
    runs = two_runs / "stepscope-runs"
    assert stepscope(two_runs, "clean").code == 0
    assert len(list(runs.iterdir())) == 2
    (runs / "first" / "notes.txt").write_text("mine")
    (runs / "not-a-run").mkdir()
    env = {"TMPDIR": str(two_runs)}
    assert stepscope(two_runs, "clean", "--older-than", "1d", "--yes", env=env).code == 0
    assert len(list(runs.iterdir())) == 3
    refused = stepscope(two_runs, "clean", "--older-than", "0s", env=env)
    if refused.code != 0:
        assert refused.code == 2
        assert "--yes" in refused.stderr
    assert stepscope(two_runs, "clean", "--older-than", "yesterday").code == 2
    assert stepscope(two_runs, "clean", "second").code == 0
    assert not (runs / "second").exists()
    assert stepscope(two_runs, "clean", "stepscope-runs/first").code == 0
    assert (runs / "first" / "notes.txt").read_text() == "mine"
    assert not (runs / "first" / "run.db").exists()
    assert (runs / "not-a-run").exists()
    assert stepscope(two_runs, "clean", "second").code == 2


def test_a_live_run_is_shown_and_left_alone(tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", "--name", "living", cpp_loop, "1000000", "forward=2")
    read_until(process, "step 100")
    run = only_run(tmp_path)
    agent_of(run)
    shown = stepscope(tmp_path, "show", "--json")
    assert shown.code == 0, shown.stderr
    assert shown.json()["run"]["state"] == "live"
    assert shown.json()["run"]["exit_code"] is None
    wait_for(lambda: "forward" in stepscope(tmp_path, "show").stdout, "steady steps in the card")
    rows = stepscope(tmp_path, "runs", "--json").json()["runs"]
    assert [row["state"] for row in rows if row["name"] == "living"] == ["live"]
    kept = stepscope(tmp_path, "clean", "living", "--yes")
    assert kept.code == 1
    assert "still going on" in kept.stderr
    assert (run / "run.db").exists()
    refused = stepscope(tmp_path, "run", "--run-dir", str(run), "--overwrite", "true")
    assert refused.code == 2
    kill(int(member_of(run)["child_pid"]))
    process.communicate(timeout=60)
    assert process.returncode == 137
    assert summary_in(run)["run"]["state"] == "ended"


def test_a_live_run_whose_agent_is_gone_is_shown_from_its_files(
    tmp_path: Path, cpp_loop: str
) -> None:
    process = start(tmp_path, "run", cpp_loop, "1000000", "forward=2")
    read_until(process, "step 600")
    run = only_run(tmp_path)
    child = int(member_of(run)["child_pid"])
    kill(process.pid)
    kill(agent_of(run))
    time.sleep(0.2)
    shown = stepscope(tmp_path, "show", "--json")
    assert shown.code == 0, shown.stderr
    assert shown.json()["run"]["state"] == "live"
    assert segment_folder(run) is not None
    kill(child)
    process.communicate(timeout=60)
    time.sleep(0.2)
    assert stepscope(tmp_path, "show", "--json").json()["run"]["state"] == "ended"


def test_doctor(tmp_path: Path) -> None:
    done = stepscope(tmp_path, "doctor")
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert {line.split()[0] for line in lines} <= {"ok", "warn", "fail"}
    names = [line.split()[1] for line in lines]
    assert {"shared_memory", "proc", "cores", "memory", "python", "run_folder", "store"} <= set(
        names
    )
    checks = stepscope(tmp_path, "doctor", "--json").json()
    assert checks["schema"] == 1
    assert [check["name"] for check in checks["checks"]] == names
    for check in checks["checks"]:
        assert check["health"] == "ok" or check["hint"]
    failed = any(check["health"] == "fail" for check in checks["checks"])
    assert done.code == (1 if failed else 0)


def test_doctor_in_a_folder_that_takes_nothing(tmp_path: Path) -> None:
    done = stepscope(tmp_path, "doctor", "--json", env={"TMPDIR": "/proc", "PATH": "/nowhere"})
    health = {check["name"]: check["health"] for check in json.loads(done.stdout)["checks"]}
    assert health["temporary_folder"] == "warn"
    assert health["python"] == "warn"
    assert os.listdir(tmp_path) == []
