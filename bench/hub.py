"""Many nodes at one hub: 4,096 ranks on 512 connections at 10 steps a second.

./dev bench hub [--ranks N] [--nodes N] [--rate N] [--seconds N]: whether the hub keeps up, how soon
a new verdict is there, and what memory it takes. Senders and hub share this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(__file__).parent.parent / "build" / "pip" / "bin"


def main() -> int:
    os.environ.setdefault("STEPSCOPE_BIN", str(Path(sys.prefix) / "bin" / "stepscope"))
    arguments = [word for word in sys.argv[1:] if word != "--json"]
    return subprocess.run([str(BIN / "bench_hub"), *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
