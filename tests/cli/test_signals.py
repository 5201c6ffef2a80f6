"""Signals: the child sees each one once, and the run survives the death of any part of us."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.commands import (
    agent_of,
    is_gone,
    kill,
    member_of,
    only_run,
    read_until,
    script,
    start,
    stepscope,
    summary_in,
    wait_for,
)
from observing import STEPSCOPE, environment

# Counts what arrives; ends 0.3 s after the first, so that a second copy would be seen.
COUNTER = """
import signal, sys, time
got = []
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP,
          signal.SIGQUIT, signal.SIGCONT, signal.SIGRTMIN):
    signal.signal(s, lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
while not got:
    time.sleep(0.01)
until = time.monotonic() + 0.3
while time.monotonic() < until:
    time.sleep(0.01)
print(" ".join(got), flush=True)
"""


def counter(folder: Path) -> list[str]:
    path = folder / "counter.py"
    path.write_text(COUNTER)
    return [sys.executable, "-I", str(path)]


def counted(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.strip()


@pytest.mark.fast
@pytest.mark.parametrize("name", ["TERM", "INT", "USR1", "USR2", "HUP", "QUIT", "CONT", "RTMIN"])
def test_for_us_alone_is_passed_on_once(tmp_path: Path, name: str) -> None:
    process = start(tmp_path, "run", *counter(tmp_path))
    read_until(process, "ready")
    process.send_signal(getattr(signal, f"SIG{name}"))
    assert counted(process) == f"SIG{name}"


@pytest.mark.fast
@pytest.mark.parametrize("name", ["TERM", "INT", "USR1", "HUP"])
def test_for_the_group_arrives_once(tmp_path: Path, name: str) -> None:
    process = start(tmp_path, "run", *counter(tmp_path))
    read_until(process, "ready")
    os.killpg(process.pid, getattr(signal, f"SIG{name}"))
    assert counted(process) == f"SIG{name}"


@pytest.mark.fast
def test_for_every_process_one_by_one_arrives_once(tmp_path: Path) -> None:
    """As a scheduler does that knows the processes of a job, the agent among them."""
    process = start(tmp_path, "run", *counter(tmp_path))
    read_until(process, "ready")
    run = only_run(tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in (process.pid, *map(int, children), agent_of(run)):
        kill(pid, signal.SIGTERM)
    assert counted(process) == "SIGTERM"
    assert summary_in(run)["run"]["exit_code"] == 0


@pytest.mark.fast
def test_sigterm_has_the_summary_written_before_the_child_ends(tmp_path: Path) -> None:
    child = script(
        tmp_path, "trap 'touch got' TERM\necho ready\nwhile ! [ -e end ]; do sleep 0.05; done"
    )
    process = start(tmp_path, "run", child)
    read_until(process, "ready")
    run = only_run(tmp_path)
    agent_of(run)
    process.send_signal(signal.SIGTERM)
    wait_for((run / "summary.json").exists, "a summary while the child lives")
    wait_for((tmp_path / "got").exists, "the signal at the child")
    assert summary_in(run)["run"]["state"] == "live"
    (tmp_path / "end").touch()
    process.communicate(timeout=60)
    assert summary_in(run)["run"]["state"] == "ended"


@pytest.mark.fast
def test_killed_supervisor_training_goes_on_and_the_run_is_finished(
    tmp_path: Path, cpp_loop: str
) -> None:
    process = start(tmp_path, "run", cpp_loop, "150", "forward=5")
    read_until(process, "step 20")
    run = only_run(tmp_path)
    child = int(member_of(run)["child_pid"])
    kill(process.pid)
    assert not is_gone(child)
    wait_for((run / "summary.json").exists, "a summary without a supervisor")
    summary = summary_in(run)
    assert summary["steps"]["count"] == 150
    assert summary["run"]["exit_code"] is None
    assert summary["run"]["state"] == "ended"


@pytest.mark.fast
def test_killed_agent_is_started_again_without_loss(tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", cpp_loop, "400", "forward=4")
    read_until(process, "step 50")
    run = only_run(tmp_path)
    for step in (100, 200):
        kill(agent_of(run))
        read_until(process, f"step {step}")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    summary = summary_in(run)
    assert summary["steps"]["count"] == 400
    assert summary["stepscope"]["records_dropped"] == 0


@pytest.mark.fast
def test_an_agent_that_always_dies_does_not_end_the_run(tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", cpp_loop, "300", "forward=4")
    read_until(process, "step 5")
    run = only_run(tmp_path)
    killed = set()
    while process.poll() is None and len(killed) < 3:
        pid = agent_of(run)
        kill(pid)
        killed.add(pid)
        time.sleep(0.05)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert stepscope(tmp_path, "show").code == 0
    assert summary_in(run)["steps"]["count"] == 300


@pytest.mark.fast
def test_a_stopped_agent_does_not_hold_up_the_end_for_ever(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "sh", "-c", "echo ready; sleep 0.5; exit 3")
    read_until(process, "ready")
    agent = agent_of(only_run(tmp_path))
    kill(agent, signal.SIGSTOP)
    _, err = process.communicate(timeout=60)
    kill(agent, signal.SIGCONT)
    assert process.returncode == 3
    assert "stepscope show" in err


@pytest.mark.fast
def test_a_signal_ends_the_wait_for_the_card(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "sh", "-c", "echo ready; sleep 0.3; echo over; exit 3")
    read_until(process, "ready")
    agent = agent_of(only_run(tmp_path))
    kill(agent, signal.SIGSTOP)
    read_until(process, "over")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=4)  # less than the wait for an agent
    kill(agent, signal.SIGCONT)
    assert process.returncode == 3


def at_terminal(folder: Path, command: list[str], keys: dict[str, bytes]) -> tuple[int, str]:
    """Runs the command in the foreground of a terminal; types keys[word] once word is printed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(command[0], command, environment(folder))
    seen = ""
    until = time.monotonic() + 30
    while True:
        readable, _, _ = select.select([terminal], [], [], max(0.0, until - time.monotonic()))
        if not readable:
            kill(pid)
            break
        try:
            seen += os.read(terminal, 4096).decode(errors="replace")
        except OSError:
            break
        for word in [word for word in keys if word in seen]:
            os.write(terminal, keys.pop(word))
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), seen


@pytest.mark.fast
def test_ctrl_c_at_a_terminal_arrives_once_and_we_stay(tmp_path: Path) -> None:
    command = [STEPSCOPE, "run", *counter(tmp_path)]
    code, seen = at_terminal(tmp_path, command, {"ready": b"\x03"})
    assert code == 0, seen
    assert "\nSIGINT\r\n" in seen.replace("^C", "")
    assert "INSUFFICIENT_DATA" in seen


@pytest.mark.fast
def test_ctrl_z_and_fg_under_a_shell(tmp_path: Path, cpp_loop: str) -> None:
    """An interactive shell sees the job stop, and fg continues the child.

    The child must not be a shell: one that is stopped between vfork and exec hangs a bare run too.
    """
    job = f"'{STEPSCOPE}' run --quiet {cpp_loop} 100 forward=5"
    shell = f"set -m; {job}; echo job-$?; fg; echo after-$?"
    code, seen = at_terminal(tmp_path, ["/bin/bash", "-c", shell], {"step 9\r": b"\x1a"})
    assert code == 0, seen
    assert f"job-{128 + signal.SIGTSTP}" in seen or f"job-{128 + signal.SIGSTOP}" in seen
    assert seen.index("job-") < seen.index("step 99\r") < seen.index("after-0")


@pytest.mark.fast
def test_we_collect_orphans_as_process_1(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for a pid namespace")
    child = "(sleep 0.1 &) ; sleep 0.5; ps -o stat= -e | grep -c Z || true"
    done = subprocess.run(
        ["unshare", "-p", "--fork", "--mount-proc", STEPSCOPE, "run", "--quiet", "sh", "-c", child],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0\n"
