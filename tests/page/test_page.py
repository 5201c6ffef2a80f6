"""The page in real Chromium: of a run that goes on, of ended ones, of a name that is hostile.

Screenshots are kept in build/screenshots.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.commands import only_run, read_until, start, stepscope
from cli.commands import wait_for as wait
from observing import ROOT
from web.client import URL, serve

sync_api = pytest.importorskip("playwright.sync_api", reason="skipped: needs playwright")

SHOTS = ROOT / "build" / "screenshots"
HOSTILE = "<img src=x onerror=alert(1)>'\" &"


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

    def close(self) -> None:
        assert not self.errors
        self.page.close()


def address(process: Any) -> str:
    for line in process.stderr:
        if found := URL.search(line):
            return found[1]
    raise AssertionError("no address was printed")


def test_a_run_that_goes_on_and_ends(chromium: Any, tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", "--serve", cpp_loop, "600", "forward=8", "backward=12")
    tab = Tab(chromium, address(process))
    tab.state("live")
    assert "token" not in tab.page.url
    step = re.compile(r"step (\d+)")

    def newest() -> int:
        found = step.search(tab.text(".status"))
        return int(found[1]) if found else -1

    before = wait(lambda: max(newest(), 0), "a step on the page")
    wait(lambda: newest() > before + 20, "later steps, without a reload")
    tab.page.keyboard.press("Space")
    tab.state("paused")
    tab.page.keyboard.press("Space")
    tab.state("live")
    tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
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
    chromium: Any, tmp_path: Path
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
    (second / "summary.json").unlink()
    process, site = serve(tmp_path)
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
    process.kill()
    process.communicate()
