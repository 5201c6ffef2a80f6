"""The views of a run of many ranks, and how long its run.db takes to open.

    ./dev bench views [--json] [--ranks N] [--steps N]

4,096 ranks and 2,442 steps (10 million rank-steps), kept as a hub keeps them: milliseconds of each
view, by the clock and on a processor (wanted: 100; other work on the machine is in the first),
then `stepscope show` of its run.db: seconds (wanted: 1) and peak memory, as it is and with the
summary taken out, so that all is read and judged again. A view's time is also given as a share of
that of one diagnosis, which the same process measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = Path(__file__).parent.parent / "build" / "pip" / "bin" / "bench_views"


def opened(folder: str, name: str) -> dict[str, float]:
    """`stepscope show` of the folder: seconds and peak memory in MB."""
    stepscope = str(Path(sys.executable).parent / "stepscope")
    began = time.monotonic()
    show = subprocess.Popen([stepscope, "show", folder], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(show.pid, 0)
    took = time.monotonic() - began
    if status != 0:
        sys.exit(f"bench: stepscope show ended with {os.waitstatus_to_exitcode(status)}")
    return {f"{name}_s": round(took, 2), f"{name}_mb": used.ru_maxrss // 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=2442)
    options = parser.parse_args()
    figures: dict[str, float] = {}
    views: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [str(BINARY), "--ranks", str(options.ranks), "--steps", str(options.steps)]
        done = subprocess.run(
            [*command, "--folder", folder], stdout=subprocess.PIPE, text=True, check=True
        )
        for line in done.stdout.splitlines():
            kind, name, value, *more = line.split("\t")
            if kind == "view":
                views[name] = (float(value), float(more[0]))
            else:
                figures[name] = float(value)
        figures |= opened(folder, "show")
        with contextlib.closing(sqlite3.connect(Path(folder, "run.db"))) as database, database:
            database.execute("DELETE FROM summary")
        figures |= opened(folder, "judged_again")
    for name, value in figures.items():
        print(f"{name:28} {value:10g}")
    for name, (ms, worked_ms) in views.items():
        share = ms / figures["diagnose_ms"] if figures["diagnose_ms"] else 0
        print(f"{name:28} {ms:10.1f} ms {worked_ms:10.1f} ms {share:6.2f} of a diagnosis")
    slowest = max(views, key=lambda name: views[name][1])
    print(f"slowest view: {slowest}, {views[slowest][1]:.0f} ms on a processor (wanted: 100)")
    if options.json:
        print(json.dumps(figures | {"views_ms": views}))


if __name__ == "__main__":
    main()
