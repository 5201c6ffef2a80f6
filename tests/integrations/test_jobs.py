"""The job files of docs/integrations: Slurm's with an `srun` of ours that starts the tasks as Slurm
does, a container's command where its entry point starts a process a rank, Kubernetes' as YAML.
"""

from __future__ import annotations

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from cli.commands import summary_in
from observing import STEPSCOPE, execute

from integrations.pages import block

TRAIN = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in torch.utils.data.DataLoader(torch.randn(96, 8), batch_size=4):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
__import__("time").sleep(0.2)  # gloo aborts now and then while its thread is at the barrier
dist.destroy_process_group()
"""
SRUN = """#!/bin/bash
for task in 0 1; do SLURM_PROCID=$task SLURM_LOCALID=$task "$@" & done
wait -n && wait -n
"""


def path_with(folder: Path, **commands: str) -> dict[str, str]:
    """An environment in which these are found, `stepscope` and this `python` too."""
    programs = folder / "bin"
    programs.mkdir()
    commands |= {
        "stepscope": f'#!/bin/sh\nexec "{STEPSCOPE}" "$@"\n',
        "python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
    }
    for name, text in commands.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (folder / "train.py").write_text(TRAIN)
    return {"PATH": f"{programs}:{os.environ['PATH']}"}


def check(run: Path) -> None:
    summary = summary_in(run)
    assert [rank["rank"] for rank in summary["ranks"]] == [0, 1]
    assert summary["run"]["world_size"] == 2
    assert summary["steps"]["count"] == 24
    assert summary["phases"]["sync"]["measured"]


def test_slurms_job_is_one_run_of_all_its_tasks(tmp_path: Path) -> None:
    port = str(20000 + os.getpid() % 10000)
    env = path_with(tmp_path, srun=SRUN)
    env |= {"SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}
    job = block("slurm", "#!/bin/bash")
    assert job.count("MASTER_PORT=29500") == 1
    (tmp_path / "job.sh").write_text(job.replace("29500", port))
    execute(tmp_path, ["bash", "job.sh"], env=env).finished()
    check(tmp_path / "stepscope-runs/slurm-17")


def test_a_containers_ranks_are_one_run(tmp_path: Path) -> None:
    command = json.loads(block("containers", "FROM ").split("ENTRYPOINT ")[1])
    where = command.index("--run-dir") + 1
    command[where] = str(tmp_path / "run")
    port = str(20000 + (os.getpid() + 5000) % 10000)
    env = path_with(tmp_path) | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}

    def one(rank: str) -> None:
        of_rank = {"RANK": rank, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": "2"}
        execute(tmp_path, command, env=env | of_rank).finished()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, "01"))
    check(tmp_path / "run")


@pytest.mark.fast
def test_kubernetes_manifest_runs_stepscope_with_room_in_shm() -> None:
    job = yaml.safe_load(block("kubernetes", "apiVersion: batch/v1"))
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"][:3] == ["stepscope", "run", "torchrun"]
    assert re.fullmatch(r"\w+\.py", container["command"][-1])
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes[mounts["/dev/shm"]]["emptyDir"] == {"medium": "Memory"}
    assert container["workingDir"] in mounts
    for name in mounts.values():
        assert name in volumes
