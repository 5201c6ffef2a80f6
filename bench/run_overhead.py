"""Whole command: `stepscope run python train.py`, 300 steps, against the bare command, in turn.

    ./dev bench run_overhead [--json] [--rounds N]

Prints added_s (median of the differences of neighbouring runs) and the ratio; the bound is +0.5 s.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = str(Path(__file__).parent / "train_300.py")


def timed(command: list[str], folder: str) -> float:
    begin = time.perf_counter()
    subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    stepscope = str(Path(sys.executable).parent / "stepscope")
    bare, observed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            bare.append(timed([sys.executable, SCRIPT], folder))
            observed.append(timed([stepscope, "run", sys.executable, SCRIPT], folder))
    added = statistics.median(b - a for a, b in zip(bare, observed, strict=True))
    result = {
        "added_s": round(added, 3),
        "bare_s": round(statistics.median(bare), 3),
        "observed_s": round(statistics.median(observed), 3),
        "ratio": round(statistics.median(observed) / statistics.median(bare), 4),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"300 steps: bare {result['bare_s']} s, with stepscope run {result['observed_s']} s, "
            f"added {result['added_s']:+} s (ratio {result['ratio']})"
        )


if __name__ == "__main__":
    main()
