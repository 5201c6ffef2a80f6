"""Three hosts as network namespaces: two train together over gloo, the third holds the hub.

    a 10.99.1.1 ------- 10.99.1.2 b     training
    a 10.99.2.1 ------- 10.99.2.2 h     to the hub
    b 10.99.3.1 ------- 10.99.3.2 h     to the hub

Whatever happens to the hub, its links and the agents, the training and the final summary are those
of an undisturbed run. b's monotonic clock is ten hours ahead of a's, and its rank is the slow one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cli.commands import agent_of, kill, only_run, summary_in, wait_for
from observing import STEPSCOPE, environment

pytestmark = pytest.mark.alone

HERE = Path(__file__).parent
SCRIPT = HERE / "train_ddp.py"
STEPS, LONG, MS, SLOW_MS = 120, 200, 30, 15
AHEAD = ("unshare", "--time", "--monotonic", "36000", "--fork", "--kill-child")
PORT = 7077


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Hosts:
    """The namespaces a, b and h, under names of this process and their own."""

    numbers = itertools.count()

    def __init__(self) -> None:
        self.id = f"{os.getpid()}x{next(Hosts.numbers)}"
        self.name = {host: f"ss{self.id}{host}" for host in "abh"}
        self.running: list[subprocess.Popen[Any]] = []

    def build(self) -> None:
        for name in self.name.values():
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for net, (left, right) in enumerate(("ab", "ah", "bh"), start=1):
            one, two = f"{left}{right}{self.id}y", f"{left}{right}{self.id}z"
            ip("link", "add", one, "type", "veth", "peer", "name", two)
            ends = ((left, one, 1, f"to_{right}"), (right, two, 2, f"to_{left}"))
            for host, device, number, label in ends:
                ip("link", "set", device, "netns", self.name[host])
                ip("-n", self.name[host], "link", "set", device, "name", label)
                ip("-n", self.name[host], "addr", "add", f"10.99.{net}.{number}/24", "dev", label)
                ip("-n", self.name[host], "link", "set", label, "up")

    def remove(self) -> None:
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for name in self.name.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def start(
        self, host: str, folder: Path, *command: str, **changes: str
    ) -> subprocess.Popen[str]:
        folder.mkdir(exist_ok=True)
        home = os.environ.get("STEPSCOPE_HOME")
        if home is None:
            import stepscope

            home = str(Path(stepscope.__file__).parent)
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.name[host], *command],
            cwd=folder,
            env=environment(folder, {"STEPSCOPE_HOME": home, **changes}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr").open("a"),
            text=True,
            start_new_session=True,
        )
        self.running.append(process)
        return process


@contextlib.contextmanager
def made_hosts() -> Iterator[Hosts]:
    made = Hosts()
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("skipped: needs root and the ip command for network namespaces")
    try:
        made.build()
    except subprocess.CalledProcessError as error:
        made.remove()
        pytest.skip(f"skipped: needs network namespaces with veth: {error.stderr.strip()}")
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with made_hosts() as made:
        yield made


class Job:
    """Two nodes in training, a third with the hub. addresses: the hub's, as each node sees it."""

    def __init__(self, hosts: Hosts, folder: Path, steps: int = STEPS, **addresses: str) -> None:
        self.hosts, self.folder, self.steps = hosts, folder, steps
        self.addresses = {"a": "10.99.2.2", "b": "10.99.3.2", **addresses}
        self.token = folder / "token"
        self.secret = secrets.token_hex(32)
        self.token.touch(mode=0o600)
        self.token.write_text(self.secret + "\n")
        self.summary: dict[str, Any] = {}
        self.hub = self.start_hub()
        self.nodes = {host: self.start_node(host, number) for number, host in enumerate("ab")}

    def start_hub(self) -> subprocess.Popen[str]:
        hub = self.hosts.start(
            "h", self.folder / "h", STEPSCOPE, "hub", "--listen", f"0.0.0.0:{PORT}",
            "--token-file", str(self.token),
        )  # fmt: skip
        wait_for(lambda: "listening on" in self.said("h"), "the hub")
        return hub

    def start_node(self, host: str, number: int) -> subprocess.Popen[str]:
        observed = (
            STEPSCOPE, "run", "--hub", f"http://{self.addresses[host]}:{PORT}", "--token-file",
            str(self.token),
        ) if self.addresses[host] else ()  # fmt: skip
        return self.hosts.start(
            host, self.folder / host, *(AHEAD if host == "b" else ()), *observed,
            sys.executable, "-m", "torch.distributed.run",
            "--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(number),
            "--master-addr", "10.99.1.1", "--master-port", "29555",
            str(SCRIPT), str(self.steps), str(MS), str(SLOW_MS),
            GLOO_SOCKET_IFNAME={"a": "to_b", "b": "to_a"}[host],
        )  # fmt: skip

    def said(self, host: str) -> str:
        return (self.folder / host / "stderr").read_text()

    def hub_run(self) -> Path:
        return wait_for(
            lambda: next(iter((self.folder / "h").glob("stepscope-runs/*")), None), "a run"
        )

    def steps_at_hub(self) -> int:
        from sqlite3 import connect

        with contextlib.suppress(Exception):
            database = connect(f"file:{self.hub_run()}/run.db?mode=ro", uri=True)
            with contextlib.closing(database):
                return database.execute("SELECT min(steps) FROM ranks").fetchone()[0] or 0
        return 0

    def finish(self) -> dict[str, Any]:
        for host, node in self.nodes.items():
            assert node.wait(timeout=120) == 0, self.said(host)
        wait_for(lambda: "has ended: stepscope show" in self.said("h"), "the end at the hub")
        return summary_in(only_run(self.folder / "h"))


def shape(summary: dict[str, Any]) -> list[tuple[int, int]]:
    return [(rank["rank"], rank["steps"]) for rank in summary["ranks"]]


def stragglers(summary: dict[str, Any]) -> list[int]:
    return [f["rank"] for f in summary["findings"] if f["code"] == "STRAGGLER"]


def kill_hub(job: Job) -> None:
    os.killpg(job.hub.pid, signal.SIGKILL)
    job.hub.wait()
    time.sleep(1)
    job.hub = job.start_hub()


def cut_link(job: Job) -> None:
    ip("-n", job.hosts.name["b"], "link", "set", "to_h", "down")
    time.sleep(3)
    ip("-n", job.hosts.name["b"], "link", "set", "to_h", "up")


def restart_agent(job: Job) -> None:
    kill(agent_of(only_run(job.folder / "a")))


def everything(job: Job) -> None:
    for disturb in (kill_hub, cut_link, restart_agent):
        disturb(job)


def disturbed(hosts: Hosts, folder: Path, disturb: Callable[[Job], None] | None) -> Job:
    job = Job(hosts, folder, LONG if disturb else STEPS)
    wait_for(lambda: job.steps_at_hub() >= 20, "steps at the hub")
    if disturb is not None:
        disturb(job)
    return job


def on_a_slow_link(hosts: Hosts, folder: Path) -> Job:
    link = hosts.start(
        "h", folder / "link", sys.executable, str(HERE / "slow_link.py"), hosts.name["b"],
        hosts.name["h"], "10.99.4.1", "10.99.4.2", "300", "0.05",
    )  # fmt: skip
    assert link.stdout is not None
    if link.stdout.readline().strip() != "ready":
        pytest.skip("skipped: needs /dev/net/tun: " + (folder / "link" / "stderr").read_text())
    return Job(hosts, folder, b="10.99.4.2")


SCENARIOS: dict[str, Callable[[Hosts, Path], Job]] = {
    "undisturbed": lambda hosts, folder: disturbed(hosts, folder, None),
    "slow link": on_a_slow_link,
    "everything": lambda hosts, folder: disturbed(hosts, folder, everything),
    "no agent on b": lambda hosts, folder: Job(hosts, folder, 80, b=""),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Job]]:
    """Each in hosts of its own, two at a time: they mostly sleep. With their summaries."""

    def run(name: str) -> Job:
        with made_hosts() as made:
            job = SCENARIOS[name](made, tmp_path_factory.mktemp("job"))
            job.summary = job.finish()
            return job

    with ThreadPoolExecutor(2) as pool:
        return {name: pool.submit(run, name) for name in SCENARIOS}


@pytest.mark.parametrize("name", ["undisturbed", "everything"])
def test_the_summary_is_that_of_an_undisturbed_run(jobs: dict[str, Future[Job]], name: str) -> None:
    job = jobs[name].result()
    summary = job.summary
    assert shape(summary) == [(0, job.steps), (1, job.steps)], summary["notices"]
    assert summary["run"]["exit_code"] == 0
    assert summary["run"]["nodes"] == 2  # of one host name: R14
    assert not [n for n in summary["notices"] if "did not reach" in n]
    assert stragglers(summary) == [1]
    for host in "ab":  # each has the whole run's card and summary, in its own folder
        own = summary_in(only_run(job.folder / host))
        assert shape(own) == shape(summary), job.said(host)
        assert own["run"]["folder"] == str(only_run(job.folder / host))
        assert "2 ranks" in job.said(host)
        if name == "undisturbed":  # each hears it while it trains, from the hub, and once
            assert job.said(host).count("found STRAGGLER: rank 1 holds") == 1, job.said(host)
    for file in job.folder.rglob("*"):
        if file.is_file() and file != job.token:
            assert job.secret.encode() not in file.read_bytes(), file


def test_a_link_of_300_ms_that_loses_5_percent(jobs: dict[str, Future[Job]]) -> None:
    job = jobs["slow link"].result()
    assert shape(job.summary) == [(0, STEPS), (1, STEPS)], job.summary["notices"]
    assert not [n for n in job.summary["notices"] if "did not reach" in n]
    assert stragglers(job.summary) == [1]
    assert shape(summary_in(only_run(job.folder / "a"))) == shape(job.summary)


def test_a_node_without_an_agent_is_unseen_and_nobody_is_accused(
    jobs: dict[str, Future[Job]],
) -> None:
    summary = jobs["no agent on b"].result().summary
    assert shape(summary) == [(0, 80)], summary["notices"]
    accused = {f["code"] for f in summary["findings"]} & {"SYNC_BOUND", "STRAGGLER", "IMBALANCE"}
    assert not accused, summary["findings"]
    assert {"what": "rank 1", "why": "no agent reports it"} in summary["not_measured"]


def test_without_a_hub_a_node_says_so_once_and_has_its_own_card(
    hosts: Hosts, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("x" * 32)
    code = "import sys; sys.exit(7)"
    script = f"exec {sys.executable} -c '{code}'"
    loop = hosts.start(
        "a", tmp_path / "a", STEPSCOPE, "run", "--hub", "http://10.99.2.2:7078", "--token-file",
        str(token), sys.executable, str(SCRIPT), "30", "5",
        RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29556",
    )  # fmt: skip
    assert loop.wait(timeout=120) == 0
    said = (tmp_path / "a" / "stderr").read_text()
    assert said.count("was not joined") == 1, said
    assert "Connection refused" in said
    assert shape(summary_in(only_run(tmp_path / "a"))) == [(0, 30)]
    failing = hosts.start(
        "a", tmp_path / "c", STEPSCOPE, "run", "--hub", "http://10.99.2.2:7078", "--token-file",
        str(token), "sh", "-c", script,
    )  # fmt: skip
    assert failing.wait(timeout=60) == 7
