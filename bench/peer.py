"""Side by side with traceml-ai 0.5.0, which it installs into a venv of its own (build/peer).

    ./dev bench peer [--json]

Cost of a step in the training process (10th percentile) and of the whole command, bare, with
Stepscope, with TraceML, on the same script, in turn.
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
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = str(ROOT / "bench" / "train_300.py")
VENV = ROOT / "build" / "peer"
ROUNDS = 5


def install() -> None:
    if (VENV / "bin" / "traceml").exists():
        return
    print("bench: installing traceml-ai 0.5.0 into build/peer", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    pip = str(VENV / "bin" / "pip")
    packages = ["torch==2.13.0", "numpy", "traceml-ai==0.5.0"]
    subprocess.run([pip, "install", "-q", *packages], check=True, stdout=sys.stderr)


def run(command: list[str], folder: str) -> tuple[float, float]:
    """Seconds of the whole command, and the script's own p10 of a step in us."""
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    seconds = time.perf_counter() - begin
    step = re.search(r"p10_us ([\d.]+)", done.stdout + done.stderr)
    if step is None:
        sys.exit(f"bench: {command} printed no step time:\n{(done.stdout + done.stderr)[-2000:]}")
    return seconds, float(step[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    install()
    ours = str(Path(sys.executable).parent / "stepscope")
    peer = str(VENV / "bin" / "traceml")
    ways = {
        "bare": [sys.executable, SCRIPT],
        "stepscope": [ours, "run", "--quiet", sys.executable, SCRIPT],
        "traceml": [peer, "run", SCRIPT, "--mode=summary", "--args", "--traceml"],
    }
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, command in ways.items():
                seen[name].append(run(command, folder))
    whole = {name: statistics.median(s for s, _ in values) for name, values in seen.items()}
    step = {name: statistics.median(us for _, us in values) for name, values in seen.items()}
    result = {
        name: {
            "command_s": round(whole[name], 2),
            "added_s": round(whole[name] - whole["bare"], 2),
            "step_us": round(step[name], 1),
            "added_us": round(step[name] - step["bare"], 1),
        }
        for name in ways
    }
    if options.json:
        print(json.dumps(result))
        return
    print(f"{'':12}{'COMMAND s':>12}{'ADDED s':>10}{'STEP us':>10}{'ADDED us':>10}")
    for name, row in result.items():
        print(
            f"{name:12}{row['command_s']:12.2f}{row['added_s']:10.2f}{row['step_us']:10.1f}{row['added_us']:10.1f}"
        )


if __name__ == "__main__":
    main()
