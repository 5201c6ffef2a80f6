"""The agent's socket: who may talk to it, what it answers; nobody can end it through it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.commands import (
    agent_of,
    is_gone,
    kill,
    member_of,
    only_run,
    read_until,
    segment_folder,
    start,
)
from cli.commands import wait_for as wait

pytestmark = pytest.mark.fast


class Live:
    def __init__(self, folder: Path, cpp_loop: str) -> None:
        self.process = start(folder, "run", cpp_loop, "1000000", "forward=2")
        read_until(self.process, "step 200")
        self.run = only_run(folder)
        self.agent = agent_of(self.run)
        segments = segment_folder(self.run)
        assert segments is not None
        self.socket = segments / "api.sock"
        wait(self.socket.exists, "the socket")

    def ask(self, method: str, target: str, body: str = "") -> tuple[int, str]:
        request = (
            f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        reply = self.send(request.encode())
        head, _, text = reply.decode().partition("\r\n\r\n")
        return int(head.split()[1]), text

    def send(self, data: bytes, timeout: float = 30) -> bytes:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(timeout)
            wait(lambda: self.reached(peer), "room in the queue of the socket")
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            got = b""
            try:
                while chunk := peer.recv(65536):
                    got += chunk
            except OSError:
                pass
            return got

    def reached(self, peer: socket.socket) -> bool:
        """A full queue of guests refuses at once, also with a timeout set."""
        try:
            peer.connect(str(self.socket))
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        kill(int(member_of(self.run)["child_pid"]))
        self.process.communicate(timeout=60)


@pytest.fixture
def live(tmp_path: Path, cpp_loop: str) -> Any:
    run = Live(tmp_path, cpp_loop)
    yield run
    run.close()


def test_health_summary_card_and_control(live: Live) -> None:
    assert stat.S_IMODE(live.socket.stat().st_mode) == 0o600
    code, text = live.ask("GET", "/v1/health")
    health = json.loads(text)
    assert code == 200
    assert (health["state"], health["folder"]) == ("live", str(live.run))
    assert [(rank["rank"], rank["alive"]) for rank in health["ranks"]] == [(0, True)]
    code, text = live.ask("GET", "/v1/summary")
    assert code == 200
    assert json.loads(text)["run"]["state"] == "live"
    code, text = live.ask("GET", "/v1/card?ascii")
    assert code == 200
    assert text.isascii()
    wait(lambda: "forward" in live.ask("GET", "/v1/card?ascii")[1], "steady steps in the card")
    assert live.ask("POST", "/v1/control", '{"word": "write"}')[0] == 200
    wait((live.run / "summary.json").exists, "the summary that was asked for")

    def steps() -> int:
        return json.loads(live.ask("GET", "/v1/summary")[1])["steps"]["count"]

    assert live.ask("POST", "/v1/control", '{"word": "off"}')[0] == 200
    wait(lambda: (before := steps()) and read_for(live, 200) and steps() == before, "a pause")
    assert live.ask("POST", "/v1/control", '{"word": "on"}')[0] == 200
    before = steps()
    wait(lambda: steps() > before, "steps again")


def test_the_views_say_what_the_summary_says(live: Live) -> None:
    def view(target: str) -> dict[str, Any]:
        code, text = live.ask("GET", "/v1/" + target)
        assert code == 200, text
        return json.loads(text)

    wait(lambda: view("series")["last"] > 300, "300 steps")
    assert live.ask("POST", "/v1/control", '{"word": "off"}')[0] == 200

    def last() -> int:
        return view("series")["last"]

    wait(lambda: (before := last()) and read_for(live, 200) and last() == before, "a pause")
    wait(lambda: view("summary")["steps"]["count"] == view("series")["last"] + 1, "the summary")
    summary = view("summary")
    series = view("series?rank=0&points=2000")
    assert sum(series["count"]) == summary["steps"]["count"]
    steady = [i for i, step in enumerate(series["first_step"]) if step >= series["warmup_until"]]

    def mean(values: list[float]) -> float:
        weights = [series["count"][i] for i in steady]
        return sum(values[i] * series["count"][i] for i in steady) / sum(weights)

    assert mean(series["total_ms"]) == pytest.approx(summary["steps"]["mean_ms"], rel=0.01)
    for phase in series["phases"]:
        of_summary = summary["phases"][phase["name"]]
        if of_summary["measured"]:
            assert mean(phase["ms"]) == pytest.approx(of_summary["mean_ms"], rel=0.01, abs=0.001)
        else:
            assert set(phase["ms"]) == {None}
    (row,) = view("ranks")["rows"]
    assert (row["rank"], row["state"], row["late_ms"]) == (0, "live", None)
    heat = view("heatmap?value=forward&columns=10")
    assert [r["label"] for r in heat["rows"]] == ["0"]
    assert len(heat["values"][0]) == len(heat["first_step"]) <= 10
    assert {s["name"] for s in view("resources")["series"]} >= {"cpu_cores", "memory_bytes"}
    assert {e["kind"] for e in view("events")["events"]} <= {"finding", "gc"}
    code, text = live.ask("GET", "/v1/series?rank=7")
    assert code == 400
    assert "rank=7" in json.loads(text)["error"]


def read_for(live: Live, lines: int) -> bool:
    assert live.process.stdout is not None
    for _ in range(lines):
        live.process.stdout.readline()
    return True


def test_hostile_bytes_do_not_end_the_agent(live: Live) -> None:
    chance = random.Random(20261129)
    for number in range(60):
        data = chance.randbytes(chance.randrange(1, 3000))
        if number % 3 == 0:
            data = b"POST /v1/control HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n" + data
        if number % 3 == 1:
            data = b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n"
        live.send(data)
    for target, code in (("/", 404), ("/v1/control", 405), ("/../../etc/passwd", 404)):
        assert live.ask("GET", target)[0] == code
    assert live.ask("POST", "/v1/control", '{"word": "explode"}')[0] == 400
    assert live.ask("GET", "/v1/health")[0] == 200
    assert not is_gone(live.agent)


def test_guests_that_say_nothing_do_not_stop_it(live: Live) -> None:
    guests = []
    for _ in range(30):
        guest = socket.socket(socket.AF_UNIX)
        guest.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            guest.connect(str(live.socket))
        guests.append(guest)
    read_until(live.process, "step")
    for guest in guests[:15]:
        guest.close()
    assert live.ask("GET", "/v1/health")[0] == 200
    for guest in guests:
        guest.close()


def test_other_users_are_refused(live: Live) -> None:
    """The modes keep them out; where these were opened, the kernel's word on the peer does."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    request = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    assert as_nobody(lambda: live.send(request)) == "PermissionError"
    for path, mode in (
        (live.socket.parent.parent, 0o711),
        (live.socket.parent, 0o711),
        (live.socket, 0o666),
    ):
        path.chmod(mode)
    try:
        assert as_nobody(lambda: live.send(request)) == "b''"
    finally:
        live.socket.parent.parent.chmod(0o700)
    assert live.ask("GET", "/v1/health")[0] == 200


def as_nobody(what: Callable[[], object]) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgid(65534)
        os.setuid(65534)
        try:
            answer = repr(what())
        except OSError as error:
            answer = type(error).__name__
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as answers:
        return answers.read()


def test_nothing_listens_on_tcp(live: Live) -> None:
    pids = [live.process.pid, live.agent, int(member_of(live.run)["child_pid"])]
    inodes = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(entry))
            except OSError:
                continue
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            listening.add(f"socket:[{line.split()[9]}]")
    assert not inodes & listening
