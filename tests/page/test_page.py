"""The page in real Chromium: of a run that goes on, of ended ones, of a name that is hostile, and
while server, agent and tab go away and come back.

Screenshots are kept in build/screenshots.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.commands import agent_of, kill, member_of, only_run, read_until, start, stepscope
from cli.commands import wait_for as wait
from observing import ROOT
from web.client import URL, Site, serve

sync_api = pytest.importorskip("playwright.sync_api", reason="skipped: needs playwright")

SHOTS = ROOT / "build" / "screenshots"
HOSTILE = "<img src=x onerror=alert(1)>'\" &"
STEP = re.compile(r"step ([\d,]+)")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("skipped: needs chromium")
    SHOTS.mkdir(parents=True, exist_ok=True)
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A tab that must stay without errors of its own."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 1600}, **options)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))
        self.page.goto(url)

    def state(self, word: str) -> None:
        self.page.wait_for_selector(f'[data-state="{word}"]', timeout=30_000)

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def newest(self) -> int:
        found = STEP.search(self.text(".status"))
        return int(found[1].replace(",", "")) if found else -1

    def steps_shown(self) -> tuple[int, int]:
        """First and last step that the chart spans, as the screen reader is told."""
        label = self.page.get_attribute("#steps .frame", "aria-label")
        first, last = re.findall(r"[\d,]+", label.split("up to")[0].split("phase, ")[1])[:2]
        return int(first.replace(",", "")), int(last.replace(",", ""))

    def brushed(self) -> tuple[int, int] | None:
        """What of it the address carries; Playwright's own copy of that is late at times."""
        found = re.search(r"from=(\d+)&to=(\d+)", self.page.evaluate("location.hash"))
        return (int(found[1]), int(found[2])) if found else None

    def drag(self, begin: float, end: float) -> None:
        """From one part of the chart of the steps to another, as shares of its width."""
        box = self.page.locator("#steps .over").first.bounding_box()
        mouse, y = self.page.mouse, box["y"] + box["height"] / 2
        mouse.move(box["x"] + begin * box["width"], y)
        mouse.down()
        mouse.move(box["x"] + end * box["width"], y, steps=4)
        mouse.up()

    def hide(self, hidden: bool) -> None:
        """What a page is told by a browser that hides it; one without a screen never does."""
        self.page.evaluate(
            """(hidden) => {
              Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            hidden,
        )

    def close(self) -> None:
        assert not self.errors
        self.page.close()


def address(process: Any) -> str:
    for line in process.stderr:
        if found := URL.search(line):
            return found[1]
    raise AssertionError("no address was printed")


class Servers:
    """Servers as serve() starts them. They end with the test, whatever becomes of it."""

    def __init__(self) -> None:
        self.processes: list[Any] = []

    def start(self, folder: Path, *arguments: str) -> Site:
        process, site = serve(folder, *arguments)
        self.processes.append(process)
        return site

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        self.processes.clear()


@pytest.fixture
def servers() -> Iterator[Servers]:
    started = Servers()
    yield started
    started.kill()


def test_a_run_that_goes_on_and_ends(chromium: Any, tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", "--serve", cpp_loop, "600", "forward=8", "backward=12")
    tab = Tab(chromium, address(process))
    tab.state("live")
    assert "token" not in tab.page.url
    before = wait(lambda: max(tab.newest(), 0), "a step on the page")
    wait(lambda: tab.newest() > before + 20, "later steps, without a reload")
    tab.page.keyboard.press("Space")
    tab.state("paused")
    tab.page.keyboard.press("Space")
    tab.state("live")
    tab.page.screenshot(path=SHOTS / "live.png")
    read_until(process, "step 599")
    process.communicate()
    tab.state("ended")
    summary = json.loads((only_run(tmp_path) / "summary.json").read_text())
    title = f"{summary['verdict']['code']} {summary['verdict']['title']}"
    wait(lambda: title in " ".join(tab.text("#verdict").split()), "the last verdict")
    assert f"{summary['steps']['mean_ms']:.1f} ms" in tab.text("#verdict")
    for name in ("forward", "backward"):
        shown = float(tab.text(f"#steps tr:has-text('{name}')").split()[-2])  # three digits
        assert shown == pytest.approx(summary["phases"][name]["mean_ms"], rel=0.006)
    tab.close()


def test_an_ended_run_in_both_themes_by_keyboard_and_on_a_phone(
    chromium: Any, tmp_path: Path, servers: Servers
) -> None:
    for name in ("first", "second"):
        done = stepscope(
            tmp_path, "simulate", "--ranks", "8", "--steps", "120", "--quiet", "--fault",
            "rank=5 phase=input add=40ms from=40", "--run-dir", f"stepscope-runs/{name}",
        )  # fmt: skip
        assert done.code == 0, done.stderr
    second = tmp_path / "stepscope-runs" / "second"
    with contextlib.closing(sqlite3.connect(second / "run.db")) as database, database:
        database.execute("UPDATE runs SET name = ?", (HOSTILE,))
        database.execute("DELETE FROM summary")  # is of another name
    (second / "summary.json").unlink()
    site = servers.start(tmp_path)
    runs = site.get("/v1/runs").json()["runs"]
    key = next(run["key"] for run in runs if run["folder"].endswith("/first"))
    url = f"http://127.0.0.1:{site.port}/?token={site.token}"
    for theme in ("light", "dark"):
        tab = Tab(chromium, url, color_scheme=theme)
        tab.page.wait_for_selector("#runs")
        assert HOSTILE in tab.text("#runs")
        assert not tab.page.query_selector("img[src='x']")
        tab.page.screenshot(path=SHOTS / f"runs_{theme}.png")
        tab.page.click(f'#runs a[href*="{key}"]')
        tab.state("ended")
        tab.page.wait_for_selector("#ranks tbody tr")
        assert "rank 5 holds the others up" in tab.text("#verdict").replace("\n", " ")
        assert tab.page.evaluate("document.documentElement.dataset.theme") == theme
        first_rank = tab.page.inner_text("#ranks tbody tr >> nth=0").split()[0]
        assert first_rank == "5"  # the worst is on top
        tab.page.keyboard.press("?")
        assert "Keys" in tab.text("#help-title")
        tab.page.keyboard.press("Escape")
        tab.page.screenshot(path=SHOTS / f"run_{theme}.png", full_page=True)
        link = tab.page.url
        tab.close()
    pair = Tab(chromium, url)
    a, b = (run["key"] for run in runs)
    pair.page.goto(f"http://127.0.0.1:{site.port}/#/compare/{a}/{b}")
    difference = site.get(f"/v1/compare?a={a}&b={b}").json()
    pair.page.wait_for_selector(".difference")
    assert difference["verdict"]["title"] in pair.text(".difference")
    words = pair.text("#compare tr:has-text('forward')").split()
    assert words[-1] == ("real" if difference["phases"]["forward"]["real"] else "noise")
    pair.page.screenshot(path=SHOTS / "compare.png")
    pair.close()
    phone = Tab(chromium, url)
    phone.page.goto(link)
    phone.page.set_viewport_size({"width": 360, "height": 800})
    phone.page.wait_for_selector("#verdict")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
    phone.page.screenshot(path=SHOTS / "phone.png")
    phone.close()


@pytest.fixture
def going_on(tmp_path: Path, cpp_loop: str) -> Iterator[Any]:
    process = start(tmp_path, "run", cpp_loop, "100000", "forward=8", "backward=12")
    read_until(process, "step 5")
    yield process
    kill(int(member_of(only_run(tmp_path))["child_pid"]), signal.SIGTERM)
    process.communicate()


def test_server_agent_and_tab_go_and_come_back(
    chromium: Any, tmp_path: Path, going_on: Any, servers: Servers
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-that-outlives-the-server")
    token.chmod(0o600)
    site = servers.start(tmp_path, "--token-file", str(token))
    tab = Tab(chromium, f"http://127.0.0.1:{site.port}/?token={token.read_text()}")
    tab.state("live")
    tab.page.evaluate("window.same = true")

    servers.kill()
    tab.state("disconnected")
    before = tab.newest()
    tab.page.screenshot(path=SHOTS / "disconnected.png")
    read_until(going_on, f"step {before + 30}")
    servers.start(tmp_path, "--token-file", str(token), "--listen", f"127.0.0.1:{site.port}")
    tab.state("live")
    wait(lambda: tab.newest() > before + 40, "steps after the ones that it missed")
    assert tab.page.evaluate("window.same")
    tab.page.keyboard.press("Space")  # so that the steps stand still under the crosshair
    tab.state("paused")
    first, last = tab.steps_shown()
    middle = (before + 20.5 - first) / (last + 1 - first)
    tab.drag(middle, middle)
    title = tab.text("#steps .breakdown th.here")
    around = [int(word.replace(",", "")) for word in re.findall(r"[\d,]+", title)]
    assert around[0] <= before + 20 <= around[-1] < around[0] + 10, title
    missed = float(tab.text("#steps tr[data-phase='backward']").split()[-1])
    assert missed >= 12  # it works so many milliseconds at least
    tab.page.keyboard.press("Space")

    agent = agent_of(only_run(tmp_path))
    kill(agent, signal.SIGSTOP)
    try:
        tab.state("stale")
        silent = re.compile(r"no step for (\d+) s")
        assert int(silent.search(tab.text(".status"))[1]) >= 3
        tab.page.screenshot(path=SHOTS / "stale.png")
    finally:
        kill(agent, signal.SIGCONT)
    tab.state("live")

    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.hide(True)
    tab.page.wait_for_timeout(500)  # for what was on its way
    asked.clear()
    tab.page.wait_for_timeout(1500)  # the ranks are asked for once a second
    assert asked == []
    before = tab.newest()
    tab.hide(False)
    for what in ("summary", "series", "ranks", "heatmap", "resources", "events"):
        wait(lambda what=what: any(f"/{what}" in url for url in asked), what)
    wait(lambda: tab.newest() > before, "steps after it was hidden")

    tab.drag(0.25, 0.75)
    wait(lambda: tab.brushed() == tab.steps_shown(), "the steps brushed")
    wider = tab.steps_shown()
    tab.drag(0.4, 0.6)
    wait(lambda: tab.brushed() == tab.steps_shown() != wider, "a part of them")
    inner = tab.steps_shown()
    assert wider[0] < inner[0] < inner[1] < wider[1]
    before = tab.newest()
    wait(lambda: tab.newest() > before + 10, "it goes on")
    assert tab.steps_shown() == inner  # what was zoomed to stays
    tab.page.dblclick("#steps .over")
    wait(lambda: tab.steps_shown() == wider, "back")
    tab.page.dblclick("#steps .over")
    wait(lambda: not tab.brushed() and tab.steps_shown()[1] > wider[1], "all steps")

    busy = {"status": 503, "json": {"error": "the run's agent does not answer", "hint": "wait"}}
    tab.page.route("**/v1/runs/**", lambda route: route.fulfill(**busy))
    tab.page.reload()
    assert "agent does not answer" in tab.text(".problem")
    tab.page.unroute("**/v1/runs/**")
    tab.state("live")
    tab.page.wait_for_selector("#ranks tbody tr")
    tab.close()
