"""Whole commands, without torch: children are shell scripts and the C++ loop."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from observing import STEPSCOPE, environment

PATIENCE_S = 60.0  # for what must happen; never a measure


@dataclasses.dataclass
class Done:
    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


def stepscope(
    folder: Path,
    *arguments: str,
    env: Mapping[str, str | None] | None = None,
    timeout: float = PATIENCE_S,
) -> Done:
    done = subprocess.run(
        [STEPSCOPE, *arguments],
        cwd=folder,
        env=environment(folder, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def start(
    folder: Path, *arguments: str, env: Mapping[str, str | None] | None = None, session: bool = True
) -> subprocess.Popen[str]:
    """In a session of its own, so that its group can be signalled without us."""
    return subprocess.Popen(
        [STEPSCOPE, *arguments],
        cwd=folder,
        env=environment(folder, env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=session,
    )


def wait_for(what: Callable[[], Any], why: str) -> Any:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.01)
    raise AssertionError(f"never came: {why}")


def read_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"{word!r} never came: {process.communicate()[1]}")


def only_run(folder: Path) -> Path:
    runs = list((folder / "stepscope-runs").iterdir())
    assert len(runs) == 1, runs
    return runs[0]


def summary_in(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def segment_folder(run: Path) -> Path | None:
    """Where the run's processes meet while it lives."""
    root = Path(f"/dev/shm/stepscope-{os.getuid()}")
    for info in root.glob("*/run.txt"):
        try:
            lines = info.read_text().splitlines()
        except OSError:
            continue
        if f"folder={run}" in lines:
            return info.parent
    return None


def agent_of(run: Path) -> int:
    def pid() -> int:
        folder = segment_folder(run)
        lock = folder / "agent.lock" if folder else None
        words = lock.read_text().split() if lock and lock.exists() else []
        return int(words[0]) if words else 0

    return wait_for(pid, "an agent")


def member_of(run: Path) -> dict[str, str]:
    def values() -> dict[str, str]:
        folder = segment_folder(run)
        for member in folder.glob("member-*") if folder else ():
            fields = dict(line.split("=", 1) for line in member.read_text().split())
            if fields["child_pid"] != "0":
                return fields
        return {}

    return wait_for(values, "a member with a child")


def is_gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rsplit(")", 1)[1].split()[0] == "Z"


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def script(folder: Path, text: str, name: str = "child.sh") -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def flat(words: Sequence[str]) -> str:
    return " ".join(" ".join(words).split())
