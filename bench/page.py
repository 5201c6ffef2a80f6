"""The page of a large run in Chromium: 4,096 ranks, an hour of steps, read from its run.db.

    ./dev bench page [--json] [--ranks N] [--steps N] [--shot FILE] [--run FOLDER]

Prints when the page first painted, had its verdict, and had all of its views (ms since the address
was entered), then the longest frame and the longest piece of script while the page is scrolled, the
table of ranks is scrolled and the charts are zoomed, and what was sent. --run: a folder that
bench_views wrote. The bounds: 1,000 ms to the first paint; 50 ms of script between two frames.
Frames that other work on the machine held up are in the longest frame, not in the script's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from web.client import site_of  # noqa: E402

BINARY = ROOT / "build" / "pip" / "bin" / "bench_views"
PAINT_BOUND_MS = 1000
FRAME_BOUND_MS = 50

LISTEN = """
  window.seen = { frames: [], tasks: [] };
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.seen.tasks.push(one.duration);
  }).observe({ type: "longtask", buffered: true });
  let before = 0;
  const frame = (at) => {
    if (before) window.seen.frames.push(at - before);
    before = at;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def moved(page: Any, act: Any) -> dict[str, float]:
    """Longest frame, and longest task of script (0: none of 50 ms), while `act` goes on."""
    page.evaluate("window.seen = { frames: [], tasks: [] }")
    act()
    page.wait_for_timeout(300)
    seen = page.evaluate("window.seen")
    return {
        "frames": len(seen["frames"]),
        "longest_frame_ms": round(max(seen["frames"]), 1),
        "longest_task_ms": round(max(seen["tasks"], default=0), 1),
    }


def scroll(page: Any) -> None:
    for step in range(60):
        page.mouse.wheel(0, 120 if step < 30 else -120)
        page.wait_for_timeout(16)


def scroll_table(page: Any) -> None:
    box = page.locator("#ranks .rows").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    for step in range(80):
        page.mouse.wheel(0, 400 if step < 60 else -800)
        page.wait_for_timeout(16)


def zoom(page: Any) -> None:
    for begin, end in ((0.2, 0.8), (0.3, 0.6)):
        box = page.locator("#steps .over").first.bounding_box()
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + begin * box["width"], y)
        page.mouse.down()
        for part in range(1, 21):
            page.mouse.move(box["x"] + (begin + (end - begin) * part / 20) * box["width"], y)
        page.mouse.up()
        page.wait_for_timeout(700)
    page.dblclick("#steps .over")
    page.wait_for_timeout(500)


def look(url: str, shot: str | None) -> dict[str, Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("bench: no chromium was found\nhint: apt-get install -y chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(LISTEN)
        sent: list[int] = []
        page.on("response", lambda reply: sent.append(int(reply.headers.get("content-length", 0))))
        page.goto(url, wait_until="commit")
        page.wait_for_selector("#verdict .code, #verdict b", state="attached")
        verdict_ms = page.evaluate("performance.now()")
        page.wait_for_selector("#ranks tbody tr td[data-column='rank']:not(:text('…'))")
        page.wait_for_selector("#ranks canvas")
        page.wait_for_selector("#steps .over")
        all_ms = page.evaluate("performance.now()")
        result: dict[str, Any] = {
            "first_paint_ms": round(page.evaluate(PAINTED), 1),
            "verdict_ms": round(verdict_ms, 1),
            "all_views_ms": round(all_ms, 1),
        }
        page.wait_for_timeout(1000)
        result["sent_kb"] = round(sum(sent) / 1024, 1)
        for name, act in (("scroll", scroll), ("table", scroll_table), ("zoom", zoom)):
            result[name] = moved(page, lambda act=act: act(page))
        if shot:
            page.screenshot(path=shot, full_page=True)
        browser.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=3600)
    parser.add_argument("--shot", help="a picture of the whole page")
    parser.add_argument("--run", help="a folder that bench_views wrote")
    options = parser.parse_args()
    stepscope = str(Path(sys.executable).parent / "stepscope")
    with tempfile.TemporaryDirectory() as folder:
        run = options.run
        if run is None:
            run = f"{folder}/run"
            Path(run).mkdir()
            subprocess.run(
                [str(BINARY), "--ranks", str(options.ranks), "--steps", str(options.steps),
                 "--folder", run, "--views", "no"],
                stdout=subprocess.DEVNULL, check=True,
            )  # fmt: skip
        server = subprocess.Popen(
            [stepscope, "serve", run], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        try:
            site = site_of(server)
            result = look(f"http://127.0.0.1:{site.port}/?token={site.token}", options.shot)
        finally:
            server.kill()
            server.wait()
    tasks = [result[name]["longest_task_ms"] for name in ("scroll", "table", "zoom")]
    result["ok"] = result["first_paint_ms"] <= PAINT_BOUND_MS and max(tasks) <= FRAME_BOUND_MS
    if options.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:16} {value}")
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
