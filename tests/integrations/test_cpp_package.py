"""find_package(stepscope): examples/libtorch against the libtorch inside the torch wheel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import stepscope
from observing import ROOT, observe

STEPS = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not optimized and without symbols: compiling torch's headers is what takes long."""
    import torch

    build = tmp_path_factory.mktemp("libtorch")
    prefixes = f"{torch.utils.cmake_prefix_path};{stepscope.cmake_prefix_path}"
    ccache = Path("/usr/bin/ccache")
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if os.access(ccache, os.X_OK) else []
    configure = ["cmake", "-B", str(build), "-S", str(ROOT / "examples/libtorch")]
    for command in (
        [*configure, f"-DCMAKE_PREFIX_PATH={prefixes}", *launcher],
        ["cmake", "--build", str(build)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "train"


def test_a_libtorch_loop_is_observed_and_trains_the_same(program: Path, tmp_path: Path) -> None:
    command = [str(program), str(STEPS)]
    ran = observe(tmp_path, command).finished()
    alone = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(ran.stdout) > 0
    assert ran.stdout == alone.stdout
    summary = ran.summary
    assert summary["steps"]["count"] == STEPS
    for phase in ("input", "forward", "backward", "optimizer"):
        assert summary["phases"][phase]["mean_ms"] > 0, phase
    assert summary["throughput"]["samples_per_s"] == pytest.approx(
        32 * summary["throughput"]["steps_per_s"], rel=0.01
    )
