"""The engine on simulated ranks: rightly named faults, false alarms, and time against ranks.

./dev bench compare [RUNS] [--json]: of RUNS (default 1000) seeded runs a fault how many are named
rightly, how many healthy runs accuse somebody, episodes in healthy runs that are looked at live,
and ns a rank and sync up to 100,000 ranks.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

BINARY = Path(__file__).parent.parent / "build" / "pip" / "bin" / "bench_compare"


def run(*words: str) -> str:
    """The output; the exit code is 1 when a run was judged wrongly, which the output says too."""
    done = subprocess.run([str(BINARY), *words], check=False, capture_output=True, text=True)
    return done.stdout


def main() -> None:
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    runs = numbers[0] if numbers else "1000"
    told = run("trials", runs) + run("healthy", runs)
    live = run("live", "50")
    table = run("scale", "100000")
    if "--json" not in sys.argv:
        print(told + live + table, end="")
        return
    right = {
        name.strip(): int(count) / int(of)
        for name, count, of in re.findall(r"^(.+?) +(\d+) of (\d+) right", told, re.MULTILINE)
    }
    rows = [line.split() for line in table.splitlines()[1:]]
    scale = [
        {"ranks": int(ranks), "ns_per_rank_sync": float(ns), "total_s": float(total)}
        for ranks, _, ns, total in rows
    ]
    print(json.dumps({"right": right, "live": live.strip(), "scale": scale}))


if __name__ == "__main__":
    main()
