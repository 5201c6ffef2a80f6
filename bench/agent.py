"""Cost of the agent: 8 ranks that record 100 steps a second each, for some seconds.

    ./dev bench agent [--json] [--ranks N] [--steps-per-s N] [--seconds N]

Prints the agent's share of one core over that time (its own CPU time / wall time) and its peak
resident memory. The bounds: 3 % and 40 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = Path(__file__).parent.parent / "build" / "pip" / "bin" / "bench_ranks"
SETTLE_S = 2.0
TICKS = os.sysconf("SC_CLK_TCK")


def agent_of(supervisor: int) -> int:
    """The supervisor's child whose first argument is `agent`."""
    for _ in range(200):
        for entry in Path("/proc").iterdir():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, IndexError, ValueError):
                continue
            if parent == supervisor and b"agent" in arguments[1:2]:
                return int(entry.name)
        time.sleep(0.01)
    sys.exit("bench: no agent came up")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps-per-s", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    stepscope = str(Path(sys.executable).parent / "stepscope")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            stepscope,
            "run",
            "--quiet",
            "--run-dir",
            f"{folder}/run",
            str(BINARY),
            str(options.ranks),
            str(options.steps_per_s),
            str(options.seconds),
        ]
        run = subprocess.Popen(command, cwd=folder)
        agent = agent_of(run.pid)
        time.sleep(SETTLE_S)
        begin, cpu = time.monotonic(), cpu_s(agent)
        time.sleep(max(1.0, options.seconds - 2 * SETTLE_S))
        share = (cpu_s(agent) - cpu) / (time.monotonic() - begin)
        memory = peak_mb(agent)
        run.wait()
        summary = json.loads(Path(f"{folder}/run/summary.json").read_text())
    result = {
        "core_share": round(share, 4),
        "peak_mb": round(memory, 1),
        "ranks": len(summary["ranks"]),
        "steps": summary["steps"]["count"],
        "records_dropped": summary["stepscope"]["records_dropped"],
        "core_share_to_bound": round(share / 0.03, 3),
        "memory_to_bound": round(memory / 40, 3),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"agent, {result['ranks']} ranks x {options.steps_per_s} steps/s: "
            f"{share:.2%} of a core, "
            f"{memory:.1f} MB at most, {result['records_dropped']} records dropped"
        )


if __name__ == "__main__":
    main()
