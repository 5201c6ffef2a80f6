"""The gain that the advice predicts against the gain when it is followed: JPEG files, Pillow.

    ./dev bench advice [--json] [--rounds N] [--steps N]

`stepscope run` on tests/scripts/pictures.py, which loads and decodes in the training process; then
twice more, with its INPUT_BOUND's advice followed: pictures that are decoded already
(`predicted_saving` of the finding), and the `num_workers` advised put in (`gain` of that advice).
Measured is what the median step is shorter by; medians of the rounds, of which each has all three.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STEPSCOPE = str(Path(sys.prefix) / "bin" / "stepscope")
WITHIN = 0.25


def observe(folder: Path, name: str, steps: int, *more: str, workers: int = 0) -> dict[str, Any]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("STEPSCOPE")}
    if workers > 0:
        # The loader that trains is the first that the script makes.
        settings = {"num_workers": workers, "prefetch_factor": 2, "persistent_workers": True}
        env["STEPSCOPE_LOADER"] = json.dumps({"loaders": [1], "settings": settings})
    script = str(ROOT / "tests" / "scripts" / "pictures.py")
    command = [sys.executable, script, str(folder / "pictures"), str(steps), *more]
    words = [STEPSCOPE, "run", "--quiet", "--run-dir", str(folder / name), "--", *command]
    subprocess.run(words, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / name / "summary.json").read_text())


def advice(summary: dict[str, Any]) -> tuple[dict[str, Any], int, float]:
    """The finding, the workers that it advises, and what those save of a step."""
    for finding in summary["findings"]:
        if finding["code"] != "INPUT_BOUND":
            continue
        for each in finding["advice"]:
            found = re.search(r"num_workers=(\d+)", each["text"])
            if found and each["gain"] is not None:
                return finding, int(found.group(1)), each["gain"]
    raise SystemExit(f"no such advice: {json.dumps(summary['findings'])}")


def step_ms(summary: dict[str, Any]) -> float:
    return summary["steps"]["median_ms"]


def main() -> int:
    parser = argparse.ArgumentParser(description="predicted against measured gain")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(options.rounds):
            before = observe(folder, f"before-{number}", options.steps)
            finding, workers, gain = advice(before)
            decoded = observe(folder, f"decoded-{number}", options.steps, "decoded")
            more = observe(folder, f"workers-{number}", options.steps, workers=workers)
            for what, predicted, after in (
                (f"{finding['cause']} mended", finding["predicted_saving"], decoded),
                (f"num_workers={workers}", gain, more),
            ):
                measured = 1 - step_ms(after) / step_ms(before)
                rows.append({"what": what, "predicted": predicted, "measured": measured})
                if not options.json:
                    print(
                        f"{what:<24} predicted {predicted:6.1%}  measured {measured:6.1%}  "
                        f"({step_ms(before):.1f} to {step_ms(after):.1f} ms a step)",
                        flush=True,
                    )
    told: list[dict[str, Any]] = []
    for what in sorted({row["what"] for row in rows}):
        of_it = [row for row in rows if row["what"] == what]
        predicted = statistics.median(row["predicted"] for row in of_it)
        measured = statistics.median(row["measured"] for row in of_it)
        off = abs(predicted - measured) / abs(measured) if measured else float("inf")
        told.append({"what": what, "predicted": predicted, "measured": measured, "off": off})
        if not options.json:
            verdict = "within" if off <= WITHIN else "NOT within"
            print(
                f"{what}: predicted {predicted:.1%}, measured {measured:.1%}, off by {off:.0%} "
                f"of it: {verdict} {WITHIN:.0%}"
            )
    if options.json:
        print(json.dumps({"rounds": rows, "medians": told}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
