"""Ray Train: two workers of one node are one run, off their main threads, and join a hub. With the
real one; without it, two processes that stand in for its workers.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import summary_in, wait_for
from cli.hubs import hub
from observing import environment, execute
from stepscope.integrations.ray import observe

from integrations.pages import example

TOKEN = "a-token-of-the-tests-0123456789"
WORKER = """
import sys, threading
import torch
from stepscope.integrations.ray import observe
from torch.utils.data import DataLoader, TensorDataset

def train_loop(config):
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.randn(config["samples"], 64)), batch_size=16):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

observed = observe(train_loop, HUB)
worker = threading.Thread(target=observed, args=({"samples": 1600},))
worker.start()
worker.join()
"""


def at_hub(folder: Path, url: str) -> str:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return f'folder=".", hub="{url}", token_file="{token}", run_id="ray-{os.getpid()}"'


def check(folder: Path, steps: int) -> None:
    """What the hub wrote, once both workers were there, and the node's own run."""
    (run,) = (folder / "stepscope-runs").iterdir()
    assert run.name.startswith("train_loop-")
    wait_for(lambda: (folder / "of-hub/summary.json").exists(), "the hub's summary")
    for where in (run, folder / "of-hub"):
        found = summary_in(where)
        assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
        assert found["steps"]["count"] == steps


def test_what_stands_in_for_its_workers_joins_a_hub(tmp_path: Path) -> None:
    """A double: processes with ranks, in which the function runs on a thread."""
    with hub(tmp_path, TOKEN) as url:
        (tmp_path / "worker.py").write_text(WORKER.replace("HUB", at_hub(tmp_path, url)))
        workers = [
            subprocess.Popen(
                [sys.executable, "worker.py"],
                cwd=tmp_path,
                env=environment(
                    tmp_path,
                    {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
                ),
            )
            for rank in "01"
        ]
        assert [worker.wait(timeout=100) for worker in workers] == [0, 0]
    check(tmp_path, steps=100)


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs ray of requirements-integrations.txt"
)
def test_workers_are_ranks_of_one_run_and_join_a_hub(tmp_path: Path) -> None:
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    with hub(tmp_path, TOKEN) as url:
        text = example("ray").replace('folder="."', at_hub(tmp_path, url))
        (tmp_path / "train.py").write_text(text)
        execute(tmp_path, [sys.executable, "train.py"], env=quiet, timeout=200).finished()
    check(tmp_path, steps=50)
    assert summary_in(tmp_path / "of-hub")["phases"]["sync"]["measured"]


@pytest.mark.fast
def test_a_hub_needs_its_token_and_an_id() -> None:
    with pytest.raises(ValueError, match="token_file and run_id"):
        observe(print, hub="http://head:7077")
