"""The page as a file of `stepscope export --to html`, in real Chromium, without any network."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli.commands import read_until, start, stepscope, wait_for
from page.test_page import HOSTILE, SHOTS, Tab, chromium

__all__ = ["chromium"]  # the fixture


def file_of(folder: Path, *words: str) -> str:
    run = folder / "stepscope-runs" / "shown"
    done = stepscope(folder, "simulate", "--quiet", "--run-dir", str(run), *words)
    assert done.code == 0, done.stderr
    return str(run)


def opened(browser: Any, file: Path, **options: Any) -> tuple[Tab, list[str]]:
    tab = Tab(browser, "about:blank", offline=True, **options)
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.on("console", lambda message: tab.errors.append(message.text))  # refused by the policy
    tab.page.goto(file.as_uri())
    tab.page.wait_for_selector("#ranks tbody tr")
    return tab, asked


def test_a_file_shows_what_the_server_would(chromium: Any, tmp_path: Path) -> None:
    run = file_of(
        tmp_path, "--ranks", "4", "--nodes", "2", "--steps", "400", "--fault",
        "rank=2 phase=input add=40ms from=100",
    )  # fmt: skip
    done = stepscope(tmp_path, "export", run, "--to", "html", "--output", "run.html")
    assert done.code == 0, done.stderr
    summary = json.loads(Path(run, "summary.json").read_text())
    for theme in ("light", "dark"):
        tab, asked = opened(chromium, tmp_path / "run.html", color_scheme=theme)
        tab.state("ended")
        assert asked == [(tmp_path / "run.html").as_uri()]
        assert tab.page.evaluate("document.documentElement.dataset.theme") == theme
        assert "rank 2 holds the others up" in tab.text("#verdict").replace("\n", " ")
        for name, phase in summary["phases"].items():
            if not phase["mean_ms"]:
                continue
            shown = float(tab.text(f"#steps tr:has-text('{name}')").split()[-2])
            assert shown == pytest.approx(phase["mean_ms"], rel=0.006)
        tab.page.screenshot(path=SHOTS / f"file_{theme}.png", full_page=True)

        def ranks(tab: Tab = tab) -> list[str]:
            lines = tab.page.locator("#ranks tbody tr").all_inner_texts()
            return [line.split()[0] for line in lines if line.strip()]

        assert ranks()[0] == "2"
        tab.page.click("#ranks th:has-text('rank')")
        tab.page.wait_for_function(
            "document.querySelector('#ranks tbody tr').innerText.trim()[0] != '2'"
        )
        assert sorted(ranks()) == ["0", "1", "2", "3"]
        tab.page.click("#ranks button:has-text('nodes')")
        tab.page.wait_for_selector("#ranks tbody tr:has-text('node1')")
        tab.page.click("text=newest 300")
        tab.page.wait_for_function("location.hash.includes('last=')")
        tab.page.click("#ranks button:has-text('backward')")
        tab.page.wait_for_selector("[aria-label^='Heat map: backward of 2 of 2 nodes']")
        tab.page.reload()  # the address leads to the same view
        tab.page.wait_for_selector("[aria-label^='Heat map: backward of 2 of 2 nodes']")
        assert not tab.text(".said")  # nothing that was asked for is missing
        tab.close()


def test_a_run_that_goes_on_is_a_snapshot(chromium: Any, tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", "--quiet", "--name", "going", cpp_loop, "100000", "forward=4")
    read_until(process, "step 50")

    def steps() -> int:
        words = ["export", "going", "--to", "html", "--output", "run.html", "--overwrite"]
        done = stepscope(tmp_path, *words)
        assert done.code == 0, done.stderr
        found = re.search(r'"steps":\{.*?"count":(\d+)', (tmp_path / "run.html").read_text())
        return int(found[1]) if found else 0

    count = wait_for(steps, "steps in the file")
    process.send_signal(signal.SIGTERM)
    process.communicate()
    tab, _ = opened(chromium, tmp_path / "run.html")
    tab.state("snapshot")
    assert f"step {count - 1}" in tab.text(".status")
    assert not tab.page.query_selector(".pause")
    assert not tab.text(".said")  # nothing that was asked for is missing
    assert tab.text("#ranks tbody tr").split()[-1] == "-"  # what it does now is not known
    tab.close()


def test_hostile_names_are_text(chromium: Any, tmp_path: Path) -> None:
    run = file_of(tmp_path, "--ranks", "2", "--steps", "60")
    name = f"</script></noscript><script>alert(1)</script>{HOSTILE}"
    with closing(sqlite3.connect(Path(run, "run.db"))) as database, database:
        database.execute("UPDATE runs SET name = ?", (name,))
        database.execute("UPDATE ranks SET node = ?", (name,))
    Path(run, "summary.json").unlink()
    done = stepscope(tmp_path, "export", run, "--to", "html", "--output", "run.html")
    assert done.code == 0, done.stderr
    tab, _ = opened(chromium, tmp_path / "run.html")
    assert name in tab.text("header")
    assert name in tab.text("#ranks")
    assert not tab.page.query_selector("img, body > script:not([id]):not([nonce])")
    tab.page.screenshot(path=SHOTS / "file_hostile.png")
    tab.close()
    plain = chromium.new_page(java_script_enabled=False)
    plain.goto((tmp_path / "run.html").as_uri())
    assert "COMPUTE_BOUND" in plain.inner_text("body")  # the card
    assert not plain.query_selector("img")
    plain.close()
