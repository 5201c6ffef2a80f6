"""A step's records with room in the ring and with a full ring (a stalled agent), in turn in one
process.

./dev bench ring [--json]: ns a step each way, their ratio, and how many drops were counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BINARY = Path(__file__).parent.parent / "build" / "pip" / "bin" / "bench_ring"


def main() -> None:
    output = subprocess.run([str(BINARY)], check=True, capture_output=True, text=True).stdout
    if "--json" in sys.argv:
        print(output.strip())
        return
    seen = json.loads(output)
    print(
        f"a step's records: {seen['step_ns']} ns, {seen['step_full_ring_ns']} ns when it is full "
        f"(ratio {seen['ratio']}); {seen['events_dropped']} events dropped and counted"
    )


if __name__ == "__main__":
    main()
