"""From the end of a step to its pixel on the page, in Chromium: one rank, watched live.

    ./dev bench pixel [--json] [--steps-per-s N] [--seconds N]

The loop prints when each step ended. The page's own canvas is listened to: once it was drawn, the
frame after that begins when the drawn one has gone to the screen; then the newest step that the
chart spans is read, and that the place where it stands has colour. Prints the median, 95th
percentile and longest wait of the steps, each to the first frame that had it. The bound: 300 ms.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from web.client import site_of  # noqa: E402

BINARY = ROOT / "build" / "pip" / "bin" / "bench_ranks"
BOUND_MS = 300
SETTLE_S = 3  # for the first look at a run

# Clocks of one machine: performance.timeOrigin is Unix time too.
LISTEN = """
  window.frames_drawn = [];
  const { fill } = CanvasRenderingContext2D.prototype;
  let waits = false;
  CanvasRenderingContext2D.prototype.fill = function (...what) {
    fill.apply(this, what);
    if (waits || !this.canvas.closest("#steps .uplot")) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      const at_ms = performance.timeOrigin + performance.now();
      const label = document.querySelector("#steps .frame").getAttribute("aria-label");
      const last = Number(/([\\d,]+), up to/.exec(label)[1].replaceAll(",", ""));
      const { width, height } = this.canvas;
      const scale = devicePixelRatio;
      const there = this.getImageData(width - 11 * scale, height - 26 * scale, 1, 1).data[3] > 0;
      if (there) window.frames_drawn.push([last, at_ms]);
    });
  };
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--steps-per-s", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("bench: no chromium was found\nhint: apt-get install -y chromium")
    stepscope = str(Path(sys.executable).parent / "stepscope")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(LISTEN)
        process = subprocess.Popen(
            [stepscope, "run", "--serve", str(BINARY), "1", str(options.steps_per_s),
             str(options.seconds + SETTLE_S)],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        site = site_of(process)
        page.goto(f"http://127.0.0.1:{site.port}/?token={site.token}")
        page.wait_for_selector('[data-state="live"]')
        printed, _ = process.communicate()  # little enough for a pipe's buffer
        drawn = page.evaluate("window.frames_drawn")
        browser.close()
    ended_ms = {
        int(words[1]): int(words[2]) / 1e6
        for words in map(str.split, printed.splitlines())
        if words[:1] == ["step"]
    }
    waits_ms: list[float] = []
    at = 0
    for step, ended in sorted(ended_ms.items()):
        while at < len(drawn) and drawn[at][0] < step:
            at += 1
        if at < len(drawn) and step >= SETTLE_S * options.steps_per_s:
            waits_ms.append(drawn[at][1] - ended)
    wanted = options.seconds * options.steps_per_s
    result = {
        "steps": len(waits_ms),
        "steps_per_s": options.steps_per_s,
        "frames": len(drawn),
        "median_ms": round(median(waits_ms), 1),
        "p95_ms": round(quantiles(waits_ms, n=20)[-1], 1),
        "longest_ms": round(max(waits_ms), 1),
        "median_to_bound": round(median(waits_ms) / BOUND_MS, 3),
    }
    ok = result["median_to_bound"] <= 1 and len(waits_ms) > 0.9 * wanted
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"end of a step to its pixel, {result['steps']} steps: "
            f"median {result['median_ms']} ms, 95 % within {result['p95_ms']} ms, "
            f"longest {result['longest_ms']} ms"
        )
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
