"""The budget of instructions a step, bench/instructions.json: exceeding it by 3 % is a failure."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from observing import ROOT


def test_instructions_a_step() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    command = [sys.executable, str(ROOT / "bench" / "instructions.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
