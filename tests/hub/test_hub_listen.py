"""A hub on one node's run: the node, or only its hub, dies and returns; the others train on.

Both nodes are this machine, with ranks that step without waiting for each other: what torchrun
gives its processes is in their environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.commands import (
    agent_of,
    is_gone,
    member_of,
    read_until,
    start,
    stepscope,
    summary_in,
    wait_for,
)

TOKEN = "a-token-of-the-tests-0123456789"
STEPS = 1200


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def hubs_of(port: int) -> list[int]:
    """Processes that are a hub on this port."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"hub" in words and f"127.0.0.1:{port}".encode() in words:
            found.append(int(place.parent.name))
    return [pid for pid in found if not is_gone(pid)]


class Nodes:
    def __init__(self, folder: Path, cpp_loop: str) -> None:
        self.folder, self.loop, self.port = folder, cpp_loop, free_port()
        self.token = folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(TOKEN)
        self.running: list[subprocess.Popen[str]] = []

    def start(self, name: str, rank: int, steps: int) -> subprocess.Popen[str]:
        place = ["--hub-listen", f"127.0.0.1:{self.port}"]
        if rank > 0:
            place = ["--hub", f"http://127.0.0.1:{self.port}"]
        (self.folder / name).mkdir()
        of_rank = [f"RANK={rank}", "WORLD_SIZE=2", "LOCAL_RANK=0", "TORCHELASTIC_RUN_ID=job7"]
        process = start(
            self.folder / name, "run", *place, "--token-file", str(self.token), "--run-dir", "run",
            "env", *of_rank, self.loop, str(steps), "forward=4",
        )  # fmt: skip
        self.running.append(process)
        return process

    def run(self, name: str) -> Path:
        return self.folder / name / "run"

    def hub_log(self, name: str) -> str:
        log = self.run(name) / "hub.log"
        return log.read_text() if log.exists() else ""

    def joined(self, name: str) -> int:
        return self.hub_log(name).count("joined run")


@pytest.fixture
def nodes(tmp_path: Path, cpp_loop: str) -> Iterator[Nodes]:
    made = Nodes(tmp_path, cpp_loop)
    yield made
    for process in made.running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for pid in hubs_of(made.port):
        os.kill(pid, signal.SIGKILL)


def nodes_stored(run: Path) -> int:
    """What a hub knows again after kill -9."""
    with contextlib.closing(sqlite3.connect(run / "run.db")) as database:
        return database.execute("SELECT count(*) FROM positions").fetchone()[0]


def test_hub_and_its_node_die_and_return(nodes: Nodes) -> None:
    other = nodes.start("b", 1, STEPS)
    first = nodes.start("a", 0, 1_000_000)
    wait_for(lambda: nodes.joined("a") == 2, "both nodes at the hub")
    wait_for(lambda: nodes_stored(nodes.run("a") / "hub") == 2, "both in the hub's run.db")
    training = int(member_of(nodes.run("b"))["child_pid"])

    (hub,) = hubs_of(nodes.port)
    os.kill(hub, signal.SIGKILL)
    read_until(other, "step 500")  # it trains on
    os.kill(training, signal.SIGSTOP)  # and does not end before the rest of the test
    wait_for(lambda: nodes.joined("a") == 4, "both at the hub that came back")
    log = nodes.hub_log("a")
    assert log.count("going on with run") == 1, log
    assert hubs_of(nodes.port) != [hub]

    # What a node's own folder knows is not all, but on the node that holds the hub.
    there = stepscope(nodes.folder / "a", "status", "run", "--exclude-list")
    assert (there.code, there.stdout) == (0, ""), there.stderr
    here = stepscope(nodes.folder / "b", "status", "run", "--exclude-list")
    assert here.code == 2
    assert "1 of the run's 2 ranks" in here.stderr
    assert "hint: the hub sees all of them" in here.stderr

    child = int(member_of(nodes.run("a"))["child_pid"])
    for pid in (first.pid, agent_of(nodes.run("a")), child, *hubs_of(nodes.port)):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    wait_for(lambda: not hubs_of(nodes.port), "the end of the hub")
    os.kill(training, signal.SIGCONT)
    read_until(other, "step 800")
    os.kill(training, signal.SIGSTOP)
    again = nodes.start("a2", 0, 300)
    wait_for(lambda: nodes.joined("a2") == 2, "both at the new hub")
    os.kill(training, signal.SIGCONT)
    assert other.wait(timeout=60) == 0
    assert again.wait(timeout=60) == 0

    wait_for(lambda: "has ended: stepscope show" in nodes.hub_log("a2"), "the end at the hub")
    summary = summary_in(nodes.run("a2") / "hub")
    # All that the other node holds, from before the first hub died on, and each step once.
    assert [(rank["rank"], rank["steps"]) for rank in summary["ranks"]] == [(0, 300), (1, STEPS)]
    assert not [notice for notice in summary["notices"] if "did not reach" in notice]
    assert summary_in(nodes.run("b"))["run"]["ranks"] == 2
    told = stepscope(nodes.folder / "b", "status", "run", "--exclude-list")
    assert told.code == 0, told.stderr  # the hub has told it
