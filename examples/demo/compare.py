"""Prints one line a run of what their summary.json files say: compare.py BEFORE AFTER."""

import json
import sys
from pathlib import Path


def line(label: str, folder: str) -> str:
    summary = json.loads((Path(folder) / "summary.json").read_text())
    return (
        f"{label:<9} {summary['verdict']['code']:<14} "
        f"input {summary['phases']['input']['share']:4.0%} of a step, "
        f"{summary['steps']['median_ms']:6.1f} ms a step, "
        f"{summary['throughput']['samples_per_s']:6.0f} samples/s"
    )


if __name__ == "__main__":
    print()
    print(line("slow:", sys.argv[1]))
    print(line("repaired:", sys.argv[2]))
