"""Many nodes at one hub: 4,096 ranks on 512 connections at 10 steps a second.

./dev bench hub [--ranks N] [--nodes N] [--rate N] [--seconds N] [--browsers N]: whether the hub
keeps up, how soon a new verdict is there, and what memory it takes. With --browsers so many look at
the run through `stepscope serve`: half read every frame and ask for the ranks once a second, half
read nothing. Senders, hub and browsers share this machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = ROOT / "build" / "pip" / "bin"
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "bench"))

from browsers import Browsers  # noqa: E402
from web.client import site_of  # noqa: E402

WAIT_S = 90


def watch(stepscope: str, bench: subprocess.Popen[bytes], places: Path, count: int) -> str:
    """Browsers until the bench ends; what they got."""
    end = time.monotonic() + WAIT_S
    while not (runs := list(places.glob("**/run.db"))):
        if time.monotonic() > end or bench.poll() is not None:
            return "browsers     none: the hub had no run"
        time.sleep(0.1)
    server = subprocess.Popen(
        [stepscope, "serve", str(runs[0].parent)], stderr=subprocess.PIPE, text=True
    )
    try:
        browsers = Browsers(site_of(server), count)
        began = time.monotonic()
        bench.wait()
        took = time.monotonic() - began
        browsers.ending = True
        frames = [count / took for count in sorted(browsers.frames)]
        asked = sum(browsers.asked) / took
        return (
            f"browsers     {count}: {frames[len(frames) // 2]:.1f} frames a second to a reader, "
            f"{frames[0]:.1f} to the slowest; {asked:.1f} tables of ranks a second"
        )
    finally:
        server.kill()
        server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--browsers", type=int, default=0)
    options, arguments = parser.parse_known_args()
    stepscope = str(Path(sys.prefix) / "bin" / "stepscope")
    os.environ.setdefault("STEPSCOPE_BIN", stepscope)
    command = [str(BIN / "bench_hub"), *arguments]
    if options.browsers == 0:
        return subprocess.run(command, check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        bench = subprocess.Popen(command, env=os.environ | {"TMPDIR": folder})
        said = watch(stepscope, bench, Path(folder), options.browsers)
        print(said)
        return bench.wait()


if __name__ == "__main__":
    sys.exit(main())
