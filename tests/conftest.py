"""What every test of a whole command shares: the binary, the C++ loop, and a folder to run in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from observing import ROOT, STEPSCOPE


@pytest.fixture(scope="session")
def stepscope_bin() -> str:
    """The `stepscope` under test: $STEPSCOPE_BIN, else the one beside this Python."""
    if not os.access(STEPSCOPE, os.X_OK):
        pytest.fail(f"no stepscope at {STEPSCOPE}; hint: ./dev build, or set STEPSCOPE_BIN")
    return STEPSCOPE


@pytest.fixture(scope="session")
def cpp_loop() -> str:
    """examples/cpp_loop: trains without Python, prints `step N` when step N is finished."""
    named = os.environ.get("STEPSCOPE_CPP_LOOP")
    path = Path(named) if named else ROOT / "build/pip/examples/cpp_loop/cpp_loop"
    if not path.exists():
        pytest.fail(f"no example program at {path}; hint: ./dev build, or set STEPSCOPE_CPP_LOOP")
    return str(path)
