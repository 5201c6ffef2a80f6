"""Fifty browsers on one run: 8 ranks at 100 steps a second each, watched by nobody, then by all.

    ./dev bench browsers [--json] [--browsers N] [--seconds N]

Half of the browsers read every frame and ask for the ranks once a second, half read nothing. Prints
the agent's share of a core without and with them, the page's, its peak memory, frames a second of a
reader (10 is the most), and the records that the agent had no time for. The bounds: 0 dropped, no
reader without frames.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "bench"))

from web.client import Site, site_of  # noqa: E402

from agent import agent_of, cpu_s, peak_mb  # noqa: E402

BINARY = ROOT / "build" / "pip" / "bin" / "bench_ranks"
SETTLE_S = 2.0


def page_of(supervisor: int) -> int:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            parent = int((entry.parent / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == supervisor and b"serve" in entry.read_bytes().split(b"\0")[1:2]:
                return int(entry.parent.name)
        except OSError:
            continue
    sys.exit("bench: no page came up")


class Browsers:
    def __init__(self, site: Site, count: int) -> None:
        self.site = site
        self.ending = False
        self.frames = [0] * (count // 2)
        self.asked = [0] * (count // 2)  # tables of ranks
        bearer = {"Authorization": f"Bearer {site.token}"}
        self.silent = [site.upgrade("/v1/live", bearer)[1] for _ in range(count - count // 2)]
        for peer in self.silent:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # soon full
        self.threads = [
            threading.Thread(target=self.read, args=[i], daemon=True) for i in range(count // 2)
        ]
        for thread in self.threads:
            thread.start()

    def read(self, number: int) -> None:
        with contextlib.suppress(OSError):  # the server went away
            self.follow(number)

    def follow(self, number: int) -> None:
        asked = time.monotonic()
        for frame in self.site.frames("/v1/live"):
            self.frames[number] += frame["type"] == "tick"
            if self.ending:
                return
            if time.monotonic() - asked > 1:
                asked += 1
                self.asked[number] += self.site.get("/v1/ranks").status == 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    stepscope = str(Path(sys.executable).parent / "stepscope")
    with tempfile.TemporaryDirectory() as folder:
        steps = 100 * (2 * options.seconds + 20)
        process = subprocess.Popen(
            [stepscope, "run", "--serve", "--run-dir", f"{folder}/run", str(BINARY), "8", "100",
             str(steps // 100)],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        site = site_of(process)
        agent, page = agent_of(process.pid), page_of(process.pid)
        time.sleep(SETTLE_S)

        def shares() -> tuple[float, float]:
            before, begin = (cpu_s(agent), cpu_s(page)), time.monotonic()
            time.sleep(options.seconds)
            wall = time.monotonic() - begin
            return (cpu_s(agent) - before[0]) / wall, (cpu_s(page) - before[1]) / wall

        alone, _ = shares()
        browsers = Browsers(site, options.browsers)
        time.sleep(SETTLE_S)
        begin, frames = time.monotonic(), sum(browsers.frames)
        watched, of_page = shares()
        a_second = (sum(browsers.frames) - frames) / len(browsers.frames)
        a_second /= time.monotonic() - begin
        memory = peak_mb(page)
        browsers.ending = True
        process.communicate()
        summary = json.loads((Path(folder) / "run" / "summary.json").read_text())
    result = {
        "browsers": options.browsers,
        "agent_share_alone": round(alone, 4),
        "agent_share_watched": round(watched, 4),
        "page_share": round(of_page, 4),
        "page_peak_mb": round(memory, 1),
        "frames_per_s": round(a_second, 1),
        "fewest_frames": min(browsers.frames),
        "records_dropped": summary["stepscope"]["records_dropped"],
        "steps": summary["steps"]["count"],
    }
    result["ok"] = result["records_dropped"] == 0 and result["fewest_frames"] > 0
    if options.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:22} {value}")
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
