"""`stepscope run --serve`: a run that goes on in the browser, and its end."""

from __future__ import annotations

import itertools
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.commands import agent_of, kill, member_of, only_run, read_until, start, stepscope, wait_for
from web.client import Site, site_of

pytestmark = pytest.mark.fast


class Live:
    def __init__(self, folder: Path, cpp_loop: str, *flags: str) -> None:
        self.folder = folder
        self.process = start(folder, "run", "--serve", *flags, cpp_loop, "1000000", "forward=2")
        self.site = site_of(self.process)
        read_until(self.process, "step 30")
        self.run = only_run(folder)
        wait_for(lambda: self.site.get("/v1/health").status == 200, "the agent")

    def end(self) -> tuple[str, str]:
        kill(int(member_of(self.run)["child_pid"]), signal.SIGTERM)
        return self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, cpp_loop: str) -> Iterator[Live]:
    run = Live(tmp_path_factory.mktemp("live"), cpp_loop)
    yield run
    if run.process.poll() is None:  # the last test did not come to it
        run.end()


def test_the_address_is_printed_once_and_works(live: Live) -> None:
    assert live.site.token
    assert live.site.get(f"/?token={live.site.token}", bearer=False).status == 200
    (run,) = live.site.get("/v1/runs").json()["runs"]
    assert (run["state"], run["folder"]) == ("live", str(live.run))
    base = f"/v1/runs/{run['key']}"
    for path in ("health", "summary", "card", "status"):
        assert live.site.get(f"{base}/{path}").status == 200
        assert live.site.get(f"/v1/{path}").status == 200
    for path in (f"{base}/nothing", f"{base}/control", "/v1/tick?since=x"):
        assert live.site.get(path).status in (400, 404, 405)
    said = live.site.get(f"{base}/control", method="POST", body='{"word": "write"}')
    assert said.status == 200
    wait_for((live.run / "summary.json").exists, "the summary that was asked for")


def test_frames(live: Live) -> None:
    ticks, summaries = [], []
    for frame in live.site.frames("/v1/live"):
        (ticks if frame["type"] == "tick" else summaries).append(frame)
        if len(ticks) >= 5 and summaries:
            break
    assert ticks[0]["gap"] is True  # what came before it was not sent
    assert all("gap" not in tick for tick in ticks[1:])
    steps = [tick["step"] for tick in ticks]
    assert steps == sorted(set(steps))
    for before, tick in itertools.pairwise(ticks):  # each step once, none left out
        series = tick["series"]
        assert series["first_step"] == list(range(before["step"] + 1, tick["step"] + 1))
        assert {len(phase["ms"]) for phase in series["phases"]} == {len(series["total_ms"])}
    assert {tick["state"] for tick in ticks} == {"live"}
    assert all(0 <= tick["age_s"] <= tick["duration_s"] for tick in ticks)
    assert summaries[0]["summary"]["run"]["name"] == live.run.name


def test_a_slow_reader_is_skipped(live: Live) -> None:
    """It reads nothing; the run and who else watches do not notice."""
    bearer = {"Authorization": f"Bearer {live.site.token}"}
    slow = []
    for _ in range(10):
        status, peer = live.site.upgrade("/v1/live", bearer)
        assert status == 101
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.append(peer)
    ticks = 0
    for frame in live.site.frames("/v1/live"):
        ticks += frame["type"] == "tick"
        if ticks == 10:
            break
    read_until(live.process, "step")
    summary = live.site.get("/v1/summary").json()
    assert summary["stepscope"]["records_dropped"] == 0
    for peer in slow:
        peer.close()


def test_a_killed_page_comes_back_and_the_run_goes_on(live: Live) -> None:
    page = page_of(live)
    kill(page)
    wait_for(lambda: page_of(live) not in (0, page), "another page")
    wait_for(lambda: answers(live.site), "its answer, at the same address, with the same token")
    read_until(live.process, "step")


def page_of(live: Live) -> int:
    """Of the processes that serve this run: the one that was started as its page."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            parent = int((path.parent / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if b"serve" in words and parent == live.process.pid:
            return int(path.parent.name)
    return 0


def answers(site: Site) -> bool:
    try:
        return site.get("/v1/summary").status == 200
    except OSError:
        return False


def test_a_killed_agent_comes_back_behind_it(live: Live) -> None:
    agent = agent_of(live.run)
    kill(agent)
    wait_for(lambda: agent_of(live.run) != agent, "another agent")
    wait_for(lambda: answers(live.site), "its answer")


def test_two_runs_do_not_log_each_other_out(live: Live, tmp_path: Path, cpp_loop: str) -> None:
    other = Live(tmp_path, cpp_loop)
    try:
        assert live.site.token != other.site.token
        cookies = {"Cookie": "; ".join([live.site.cookie(), other.site.cookie()])}
        for site in (live.site, other.site):
            assert site.get("/v1/summary", cookies, bearer=False).status == 200
    finally:
        other.end()


def test_status_and_show_of_its_url(live: Live, tmp_path: Path) -> None:
    site = live.site
    base = f"http://localhost:{site.port}"
    url = f"{base}/?token={site.token}"
    key = site.get("/v1/runs").json()["runs"][0]["key"]
    token = tmp_path / "token"
    token.write_text(site.token)
    token.chmod(0o600)
    for arguments in (
        (url,),
        (f"{url}#/somewhere",),
        (f"{base}/v1/runs/{key}?token={site.token}",),
        (base, "--token-file", str(token)),
    ):
        done = stepscope(tmp_path, "status", *arguments)
        assert (done.code, done.stderr) == (0, "")
        assert "RANK  NODE" in done.stdout
    assert stepscope(tmp_path, "status", "--json", url).json()["run"]["state"] == "live"
    assert "phases" in stepscope(tmp_path, "show", "--json", url).json()
    assert live.run.name in stepscope(tmp_path, "show", url).stdout
    nobody_is_late = stepscope(tmp_path, "status", "--exclude-list", url)
    assert (nobody_is_late.code, nobody_is_late.stdout) == (0, "")
    for arguments, word in (
        ((base,), "wants another token"),
        ((f"{base}/?token=wrong",), "wants another token"),
        ((f"{base}/v1/runs/nobody-12345678/?token={site.token}",), "there is no run nobody"),
        ((f"{base}/elsewhere?token={site.token}",), "not the URL of a run"),
        (("http://127.0.0.1:1/?token=x",), "does not answer: Connection refused"),
        ((f"{base}/?token=a%0d%0ab",), "letters that no token has"),
    ):
        done = stepscope(tmp_path, "status", *arguments)
        assert (done.code, word in done.stderr) == (2, True), done.stderr


def test_an_open_page_is_told_of_the_end(live: Live) -> None:
    """The last test of the run: it ends it."""
    frames = live.site.frames("/v1/live")
    assert next(frames)["state"] == "live"
    url = f"http://127.0.0.1:{live.site.port}/?token={live.site.token}"
    watching = start(live.folder, "status", "--watch", "--json", url)
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["run"]["state"] == "live"
    _, said = live.end()
    watching.communicate(timeout=30)
    assert watching.returncode == 0
    rest = list(frames)
    assert [frame["type"] for frame in rest[-3:]] == ["tick", "summary", "end"]
    assert rest[-3]["state"] == "ended"
    written = json.loads((live.run / "summary.json").read_text())
    of_ranks = {"ranks", "now", "loaders"}  # a page asks for those in pieces
    assert rest[-2]["summary"] == {key: written[key] for key in written if key not in of_ranks}
    assert live.process.returncode == 143
    assert "token=" not in said  # it was printed once
    assert not answers(live.site)


def test_the_child_has_nothing_of_it(tmp_path: Path) -> None:
    child = "ls -l /proc/self/fd | grep -c socket; env | grep -ci token; true"
    done = stepscope(tmp_path, "run", "--serve", "--quiet", "sh", "-c", child)
    assert done.code == 0
    assert done.stdout.split() == ["0", "0"]


def test_a_page_that_cannot_be_is_said_and_the_run_runs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        done = stepscope(tmp_path, "run", "--serve", "--listen", where, "sh", "-c", "exit 7")
    assert done.code == 7
    assert "there is no page: cannot listen on" in done.stderr


def test_wrong_use(tmp_path: Path) -> None:
    for flags, word in (
        (("--listen", "127.0.0.1:0"), "go with --serve"),
        (("--serve", "--token-file", "nowhere"), "cannot read the token file"),
        (("--otlp", "collector"), "is no URL"),
    ):
        done = stepscope(tmp_path, "run", *flags, "true")
        assert (done.code, word in done.stderr) == (2, True), done.stderr
