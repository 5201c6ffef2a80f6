"""Runs every benchmark of bench/ in turn. --json: the last line is {"NAME": {...}, ...}.

A benchmark is a script that says how it is started, `./dev bench NAME`; others are its parts.
"""

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent / "bench"
COMMANDS = {".py": sys.executable, ".sh": "bash"}


def main(arguments: list[str]) -> int:
    failed: list[str] = []
    results: dict[str, object] = {}
    for path in sorted(BENCH.iterdir()):
        if path.suffix not in COMMANDS or f"./dev bench {path.stem}" not in path.read_text():
            continue
        print(f"\n== {path.stem}", flush=True)
        done = subprocess.run(
            [COMMANDS[path.suffix], str(path), *arguments], stdout=subprocess.PIPE, text=True
        )
        print(done.stdout, end="", flush=True)
        if done.returncode != 0:
            failed.append(path.stem)
        elif "--json" in arguments:
            results[path.stem] = json.loads(done.stdout.rstrip().rsplit("\n", 1)[-1])
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    if "--json" in arguments:
        print(json.dumps(results))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
