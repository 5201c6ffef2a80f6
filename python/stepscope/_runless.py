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
from dataclasses import dataclass

START_WAIT_S = 1.0
CARD_WAIT_S = 2.0


@dataclass(frozen=True)
class Options:
    """What the agent is started with; None and empty: as this process is found."""

    folder: str | None = None  # below it stepscope-runs
    run_id: str | None = None  # processes with the same are one run
    name: str | None = None
    hub: tuple[str, ...] = ()  # arguments, as of `stepscope run`


_options = Options()


def use(options: Options) -> None:
    global _options
    _options = options


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


def _name_of(script: str) -> str:
    return (
        "notebook" if script == "ipykernel_launcher.py" else os.path.splitext(script)[0] or "python"
    )


def find_binary() -> str:
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
    key = _options.run_id or _key(ranks)
    key = "".join(c if c.isalnum() or c in "-_." else "-" for c in key)
    folder = f"/dev/shm/stepscope-{os.getuid()}/{key}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    command = [
        find_binary(),
        "agent",
        "--detach",
        "--segments",
        folder,
        "--id",
        key,
        "--cwd",
        _options.folder or os.getcwd(),
        "--name",
        _options.name or _name_of(script),
        "--command-json",
        json.dumps([sys.executable, *sys.argv]),
        *_options.hub,
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


def wait_for_card(run_folder: str) -> str | None:
    """The card of a run that has just ended; None when it does not come within CARD_WAIT_S."""
    card = os.path.join(run_folder, "summary.txt")
    deadline = time.monotonic() + CARD_WAIT_S
    while time.monotonic() < deadline:
        if os.path.exists(card):
            with open(card, encoding="utf-8", errors="replace") as text:
                return text.read()
        time.sleep(0.02)
    return None


def print_card(run_folder: str) -> None:
    """At exit or stop(), on local rank 0: the card to stderr."""
    card = wait_for_card(run_folder)
    if card is None:
        card = f"stepscope: still writing; hint: stepscope show {run_folder}\n"
    sys.stderr.write(card)
