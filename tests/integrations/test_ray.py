"""Ray Train, the real one: two workers of one node are one run, off their main threads."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from observing import execute
from stepscope.integrations.ray import observe

from integrations.pages import write_example


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs ray of requirements-integrations.txt"
)
def test_workers_are_ranks_of_one_run(tmp_path: Path) -> None:
    write_example("ray", tmp_path)
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    ran = execute(tmp_path, [sys.executable, "train.py"], env=quiet, timeout=200).finished()
    (ran.run,) = (tmp_path / "stepscope-runs").iterdir()
    assert ran.run.name.startswith("train_loop-")
    assert [rank["rank"] for rank in ran.summary["ranks"]] == [0, 1]
    assert ran.summary["steps"]["count"] == 50
    assert ran.summary["phases"]["sync"]["measured"]


@pytest.mark.fast
def test_a_hub_needs_its_token_and_an_id() -> None:
    with pytest.raises(ValueError, match="token_file and run_id"):
        observe(print, hub="http://head:7077")
