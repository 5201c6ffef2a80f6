"""`python train.py` with trace_step in it and no `stepscope run`: start the agent, and at the end
print its card.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time

START_WAIT_S = 1.0
CARD_WAIT_S = 2.0


def _key(ranks: tuple[int, int, int, int]) -> str:
    """The run's identity, as `stepscope run` forms it: ranks of one job find the same agent."""
    environment = os.environ
    launcher = environment.get("TORCHELASTIC_RUN_ID", "none")
    if launcher != "none":
        return launcher
    if "SLURM_JOB_ID" in environment and ranks[2] > 1:
        return f"{environment['SLURM_JOB_ID']}.{environment.get('SLURM_STEP_ID', '0')}"
    if ranks[2] > 1 and "MASTER_ADDR" in environment:
        return f"{environment['MASTER_ADDR']}:{environment.get('MASTER_PORT', '')}"
    if ranks[2] > 1:
        return f"parent-{os.getppid()}"
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def _binary() -> str:
    package = os.path.dirname(os.path.abspath(__file__))
    for folder in (
        os.path.join(sys.prefix, "bin"),
        os.path.join(package, "..", "..", "..", "..", "bin"),
        *os.environ.get("PATH", "").split(os.pathsep),
    ):
        path = os.path.join(folder, "stepscope")
        if os.access(path, os.X_OK):
            return path
    raise OSError(
        "the stepscope command was not found beside the package or in PATH; "
        "hint: pip install stepscope"
    )


def start_agent(ranks: tuple[int, int, int, int]) -> tuple[str, str | None]:
    """Start `stepscope agent --detach`; return the segment folder and the run folder (None: not
    known in time).

    Every rank of the node does so; the agents but the first see that the folder has one, and end.
    """
    key = "".join(c if c.isalnum() or c in "-_." else "-" for c in _key(ranks))
    folder = f"/dev/shm/stepscope-{os.getuid()}/{key}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    command = [
        _binary(),
        "agent",
        "--detach",
        "--segments",
        folder,
        "--id",
        key,
        "--cwd",
        os.getcwd(),
        "--name",
        os.path.splitext(script)[0] or "python",
        "--command-json",
        json.dumps([sys.executable, *sys.argv]),
    ]
    # The agent forks twice and lets go of every descriptor: this returns when it is on its own.
    started = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=10,
        check=False,
    )
    if started.returncode != 0:
        raise OSError(started.stderr.decode(errors="replace").strip() or "the agent did not start")
    deadline = time.monotonic() + START_WAIT_S
    while (run := _run_folder(folder)) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return folder, run


def _run_folder(folder: str) -> str | None:
    try:
        with open(os.path.join(folder, "run.txt"), encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("folder="):
                    return line.removeprefix("folder=").rstrip("\n")
    except OSError:
        pass
    return None


def print_card(run_folder: str) -> None:
    """At exit, on local rank 0: wait at most CARD_WAIT_S for the card and print it to stderr."""
    card = os.path.join(run_folder, "summary.txt")
    deadline = time.monotonic() + CARD_WAIT_S
    while time.monotonic() < deadline:
        if os.path.exists(card):
            with open(card, encoding="utf-8", errors="replace") as text:
                sys.stderr.write(text.read())
            return
        time.sleep(0.02)
    print(f"stepscope: still writing; hint: stepscope show {run_folder}", file=sys.stderr)
