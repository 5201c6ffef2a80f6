"""Instructions that the hooks and the recorder add to a step, counted by callgrind: the same on a
busy machine.

    ./dev bench instructions [--json] [--update]

Fails (exit 1) when the count passes the budget in bench/instructions.json by 3 %. --update writes a
new budget.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUDGET = HERE / "instructions.json"
SLACK = 1.03
FEW, MANY = 500, 2500


def count(how: str, steps: int) -> int:
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        sys.executable,
        "-S",
        str(HERE / "instructions_loop.py"),
        how,
        str(steps),
    ]
    import stepscope

    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(Path(stepscope.__file__).parent.parent),
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or collected is None:
        sys.exit(f"bench: callgrind failed ({done.returncode}):\n{done.stderr[-2000:]}")
    return int(collected[1])


def per_step(how: str) -> float:
    return (count(how, MANY) - count(how, FEW)) / (MANY - FEW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: needs valgrind (apt-get install -y valgrind)")
        return
    hooked, plain = per_step("hooked"), per_step("plain")
    added = round(hooked - plain)
    if options.update:
        BUDGET.write_text(json.dumps({"added_instructions_per_step": added}) + "\n")
    budget = json.loads(BUDGET.read_text())["added_instructions_per_step"]
    result = {
        "added_instructions_per_step": added,
        "budget": budget,
        "plain_instructions_per_step": round(plain),
        "ratio_to_budget": round(added / budget, 4),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"hooks and recorder: {added} instructions a step (budget {budget}, at most +3 %)")
    if added > budget * SLACK:
        sys.exit(f"bench: {added} instructions a step, {added / budget - 1:.1%} over its {budget}")


if __name__ == "__main__":
    main()
