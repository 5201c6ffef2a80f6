"""A step that never ends: the steps before it are told while it hangs, and after the process was
killed in it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from observing import STEPSCOPE, environment, script

STEPS = 30  # the last of these never ends


def show(run: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [STEPSCOPE, "show", str(run), *flags],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(run.parent),
        cwd=run.parent,
        check=False,
    )


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []


def command_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


@pytest.mark.parametrize("place", ["hang_in_input", "hang_in_forward"])
def test_a_step_that_never_ends(tmp_path: Path, place: str) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen(
        [STEPSCOPE, "run", "--run-dir", str(run), "--", *script("ends.py", place, STEPS)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = ""
        while "waiting" not in line:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
        summary = {}
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:  # the agent stores once a second
            live = show(run, "--json")
            if live.returncode == 0:
                summary = json.loads(live.stdout)
                if summary["steps"]["count"] == STEPS - 1:
                    break
            time.sleep(0.2)
        assert summary["steps"]["count"] == STEPS - 1, summary.get("steps")
        assert summary["run"]["exit_code"] is None
        card = show(run)
        assert card.returncode == 0
        assert card.stdout
        training = [pid for pid in children(process.pid) if command_of(pid)[0] == sys.executable]
        assert len(training) == 1
        os.kill(training[0], signal.SIGKILL)
        process.communicate(timeout=30)
        assert process.returncode == 128 + signal.SIGKILL
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    summary = json.loads((run / "summary.json").read_text())
    assert summary["run"]["exit_code"] == 128 + signal.SIGKILL
    assert summary["steps"]["count"] == STEPS - 1
    told = show(run)
    assert told.returncode == 0
    assert told.stdout.splitlines()[0].startswith(summary["verdict"]["code"])
