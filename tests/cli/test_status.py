"""stepscope status: of a live run from its first moment, of an ended one, of one that is stuck."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from cli.commands import only_run, read_until, start, stepscope
from cli.commands import wait_for as wait
from observing import torchrun


def status(folder: Path, *arguments: str) -> dict[str, Any]:
    done = stepscope(folder, "status", "--json", *arguments)
    assert done.code == 0, done.stderr
    return done.json()


@pytest.mark.fast
def test_of_a_run_that_has_not_begun_to_step(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "sleep", "1000")
    folder = tmp_path / "stepscope-runs"
    wait(lambda: folder.is_dir() and list(folder.iterdir()), "the run's folder")
    (run,) = folder.iterdir()
    found = status(tmp_path, str(run))
    assert found["live"] is True
    assert found["now"] == []
    assert found["verdict"]["code"] == "INSUFFICIENT_DATA"
    assert stepscope(tmp_path, "status", str(run)).code == 0
    process.terminate()
    process.wait()


@pytest.mark.fast
def test_of_a_live_and_of_an_ended_run(tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", cpp_loop, "1000000", "forward=2")
    read_until(process, "step 200")
    run = only_run(tmp_path)
    found = status(tmp_path)
    assert found["live"] is True
    (now,) = found["now"]
    assert now["rank"] == 0
    assert now["alive"] is True
    assert now["step"] >= found["steps"]["count"]
    assert now["phase"] in {*found["phases"]}
    text = stepscope(tmp_path, "status", run.name).stdout
    assert "running" in text
    assert "NOW" in text
    process.terminate()
    process.wait()
    ended = status(tmp_path)
    assert ended["live"] is False
    assert ended["now"] == []
    assert ended == json.loads((run / "summary.json").read_text())
    assert "ended" in stepscope(tmp_path, "status").stdout


@pytest.mark.fast
def test_watch_is_one_object_a_line_until_the_run_ends(tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", cpp_loop, "1000000", "forward=2")
    read_until(process, "step 100")
    watch = start(tmp_path, "status", "--watch", "--json")
    assert watch.stdout is not None
    first = json.loads(watch.stdout.readline())
    assert first["live"] is True
    # The agent answers twice within a second alike, so perhaps not the second line, but the third.
    later = [json.loads(watch.stdout.readline()) for _ in range(2)]
    assert all(line["live"] for line in later)
    assert later[-1]["steps"]["count"] > first["steps"]["count"]
    process.terminate()
    process.wait()
    rest = [json.loads(line) for line in watch.stdout.read().splitlines()]
    assert rest[-1]["live"] is False
    assert watch.wait() == 0


@pytest.mark.fast
def test_exclude_list_names_hosts_that_were_late_for_most_of_the_run(tmp_path: Path) -> None:
    for name, fault in {
        "chronic": "node=1 phase=forward add=20ms",
        "short": "node=1 phase=forward add=20ms from=200 to=260",
        "healthy": "",
    }.items():
        faults = ["--fault", fault] if fault else []
        ran = stepscope(tmp_path, "simulate", "--ranks", "32", "--steps", "300", *faults,
                        "--run-dir", name)  # fmt: skip
        assert ran.code == 0, ran.stderr
    assert stepscope(tmp_path, "status", "chronic", "--exclude-list").stdout == "node1\n"
    assert stepscope(tmp_path, "status", "short", "--exclude-list").stdout == ""
    assert stepscope(tmp_path, "status", "healthy", "--exclude-list").stdout == ""


@pytest.mark.fast
def test_wrong_use(tmp_path: Path) -> None:
    assert stepscope(tmp_path, "status", "nothing").code == 2
    assert stepscope(tmp_path, "status", "--exclude-list", "--json").code == 2


def test_a_stuck_rank_is_named_while_it_is_stuck(tmp_path: Path) -> None:
    """R17. First in its group, while a rank outside of it goes on; then of all, when that one
    waits too. What is said on stderr meanwhile, and that training then goes on to its end.
    """
    wanted = ["--set", "stuck_s=1", "--set", "stuck_steps=20"]
    process = start(tmp_path, "run", *wanted, *torchrun(3, "stuck.py"))
    assert process.stderr is not None
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr or []), daemon=True)
    reader.start()

    def stuck(words: str) -> dict[str, Any]:
        done = stepscope(tmp_path, "status", "--json")
        verdict = done.json()["verdict"] if done.code == 0 else {"code": ""}
        return done.json() if verdict["code"] == "STUCK" and words in verdict["title"] else {}

    found = wait(lambda: stuck("ranks 0-1 have not moved for"), "STUCK of the group")
    assert found["verdict"]["rank"] == 1
    assert found["verdict"]["phase"] == "input"
    assert "rank 0 waits" in found["verdict"]["title"]
    now = {row["rank"]: row for row in found["now"]}
    assert now[1]["phase"] == "input"
    assert now[0]["phase"] == "sync"
    assert now[1]["since_s"] > 1
    assert now[2]["step"] > now[1]["step"]
    wait(lambda: any("found STUCK" in line and "rank 1" in line for line in said), "its line")

    def is_stack(line: str) -> bool:
        return "rank 1, stuck at step 30, stands in " in line and "Stuck.__getitem__ (stuck" in line

    wait(lambda: any(map(is_stack, said)), "its stack")
    (tmp_path / "measured.json.together").touch()
    found = wait(lambda: stuck("no rank has moved for"), "STUCK of all")
    assert found["verdict"]["rank"] == 1
    assert "ranks 0, 2 wait" in found["verdict"]["title"]
    (tmp_path / "measured.json.go").touch()
    assert process.wait() == 0, "".join(said)
    reader.join()
    ended = status(tmp_path)
    assert ended["verdict"]["code"] != "STUCK"
    assert [rank["steps"] for rank in ended["ranks"]][:2] == [40, 40]
    assert any(map(is_stack, ended["notices"]))
