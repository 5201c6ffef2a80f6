"""Several supervisors, one run: once a rank under a launcher, restarts, and the same id again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from cli.commands import (
    agent_of,
    is_gone,
    kill,
    only_run,
    read_until,
    script,
    start,
    stepscope,
    summary_in,
    wait_for,
)
from observing import STEPSCOPE, environment

pytestmark = pytest.mark.fast


def ranks(world: int, **more: str) -> list[dict[str, str | None]]:
    return [
        {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(world)} | more
        for r in range(world)
    ]


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    out = []
    for process in processes:
        stdout, stderr = process.communicate(timeout=60)
        out.append((process.returncode, stdout, stderr))
    return out


@pytest.mark.parametrize("given", [{}, {"MASTER_ADDR": "localhost", "MASTER_PORT": "29512"}])
def test_four_parallel_runs_are_one(tmp_path: Path, cpp_loop: str, given: dict[str, str]) -> None:
    go = tmp_path / "go"
    child = script(
        tmp_path, f"while ! [ -e {go} ]; do sleep 0.02; done; exec {cpp_loop} 40 forward=3"
    )
    processes = [start(tmp_path, "run", child, env=env) for env in ranks(4, **given)]
    run = wait_for(
        lambda: next(iter(tmp_path.glob("stepscope-runs/*/run.db")), None), "a run"
    ).parent
    wait_for(
        lambda: len(list(Path(f"/dev/shm/stepscope-{os.getuid()}").glob("*/member-*"))) >= 4,
        "4 members",
    )
    go.touch()
    ends = finish(processes)
    assert [code for code, _, _ in ends] == [0] * 4
    assert only_run(tmp_path) == run
    summary = summary_in(run)
    assert summary["run"]["ranks"] == 4
    assert [rank["rank"] for rank in summary["ranks"]] == [0, 1, 2, 3]
    assert [
        rank["steps"]["count"] if isinstance(rank["steps"], dict) else rank["steps"]
        for rank in summary["ranks"]
    ] == [40] * 4
    assert "stepscope show" in ends[0][2]  # the card is rank 0's
    for _, _, stderr in ends[1:]:
        assert "throughput" not in stderr


def test_processes_that_only_look_alike_are_runs_of_their_own(tmp_path: Path) -> None:
    env = {"WORLD_SIZE": "1", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29511"}
    for process in [start(tmp_path, "run", "sleep", "0.3", env=env) for _ in range(3)]:
        process.communicate(timeout=60)
    assert len(list((tmp_path / "stepscope-runs").iterdir())) == 3


def test_exit_code_of_the_run_is_the_first_rank_that_failed(tmp_path: Path) -> None:
    child = script(tmp_path, "sleep 0.5; exit $((RANK * 2))")
    ends = finish([start(tmp_path, "run", "--run-id", "x7", child, env=env) for env in ranks(3)])
    assert [code for code, _, _ in ends] == [0, 2, 4]
    assert summary_in(only_run(tmp_path))["run"]["exit_code"] == 2


def test_an_id_whose_processes_ended_is_a_new_run(tmp_path: Path) -> None:
    env = {"TORCHELASTIC_RUN_ID": "again"}
    for code in (1, 0):
        assert stepscope(tmp_path, "run", "sh", "-c", f"exit {code}", env=env).code == code
    runs = sorted((tmp_path / "stepscope-runs").iterdir())
    assert sorted(summary_in(run)["run"]["exit_code"] for run in runs) == [0, 1]


def test_a_launchers_restart_with_the_same_run_dir_is_not_refused(tmp_path: Path) -> None:
    env = {"TORCHELASTIC_RUN_ID": "restarted"}
    for code in (1, 0):
        done = stepscope(tmp_path, "run", "--run-dir", "out", "sh", "-c", f"exit {code}", env=env)
        assert done.code == code
    assert summary_in(tmp_path / "out")["run"]["exit_code"] == 1
    assert summary_in(tmp_path / "out-2")["run"]["exit_code"] == 0
    assert stepscope(tmp_path, "run", "--run-dir", "out", "true").code == 2


def test_a_rank_that_ends_early_waits_for_nobody(tmp_path: Path) -> None:
    stay = tmp_path / "stay"
    stay.touch()
    child = script(
        tmp_path, f"echo here; [ $RANK = 1 ] && exit 5; while [ -e {stay} ]; do sleep 0.02; done"
    )
    env0, env1 = ranks(2)
    first = start(tmp_path, "run", "--run-id", "early", child, env=env0)
    read_until(first, "here")
    second = start(tmp_path, "run", "--run-id", "early", child, env=env1)
    second.communicate(timeout=60)
    assert second.returncode == 5
    assert first.poll() is None
    stay.unlink()
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert summary_in(only_run(tmp_path))["run"]["exit_code"] == 5


def test_the_owner_may_be_any_rank_and_may_end_first(tmp_path: Path, cpp_loop: str) -> None:
    env0, env1 = ranks(2)
    owner = start(tmp_path, "run", "--run-id", "o1", cpp_loop, "5", "forward=50", env=env1)
    read_until(owner, "step 0")
    other = start(tmp_path, "run", "--run-id", "o1", cpp_loop, "60", "forward=10", env=env0)
    owner.communicate(timeout=60)
    assert owner.returncode == 0
    _, stderr = other.communicate(timeout=60)
    assert other.returncode == 0
    summary = summary_in(only_run(tmp_path))
    assert summary["run"]["ranks"] == 2
    assert summary["steps"]["count"] == 60
    assert "throughput" in stderr


def test_killed_owner_and_agent_the_other_rank_finishes_the_run(
    tmp_path: Path, cpp_loop: str
) -> None:
    env0, env1 = ranks(2)
    owner = start(tmp_path, "run", "--run-id", "o2", cpp_loop, "1000000", "forward=5", env=env0)
    read_until(owner, "step 3")
    run = only_run(tmp_path)
    other = start(tmp_path, "run", "--run-id", "o2", cpp_loop, "120", "forward=5", env=env1)
    read_until(other, "step 10")
    agent = agent_of(run)
    os.killpg(owner.pid, signal.SIGKILL)
    kill(agent)
    wait_for(lambda: is_gone(agent), "the end of the agent")
    other.communicate(timeout=60)
    assert other.returncode == 0
    summary = summary_in(run)
    assert summary["run"]["ranks"] == 2
    assert [r["rank"] for r in summary["ranks"]] == [0, 1]
    assert summary["run"]["exit_code"] is None


def test_R14_containers_with_equal_pids_share_shm_and_stay_apart(
    tmp_path: Path, cpp_loop: str
) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root for pid namespaces")
    command = [
        "unshare",
        "-p",
        "--fork",
        "--mount-proc",
        STEPSCOPE,
        "run",
        cpp_loop,
        "60",
        "forward=3",
    ]
    processes = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(tmp_path, env),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for env in ranks(2, MASTER_ADDR="localhost", MASTER_PORT="29513")
    ]
    assert [code for code, _, _ in finish(processes)] == [0, 0]
    runs = list((tmp_path / "stepscope-runs").iterdir())
    assert len(runs) == 2
    assert [summary_in(run)["steps"]["count"] for run in runs] == [60, 60]
