"""D14: the limit of a group above the job's own counts, and page cache is not memory used up.
D15: a worker that the kernel ended for lack of memory.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from observing import STEPSCOPE, Ran, environment, script, together

LIMIT = 3 << 28
WARNING = 0.7  # a group that is nearly full may be out of memory at any time


def own_group() -> Path | None:
    """This process's memory group, version 1 or 2, where groups can be made."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path("/sys/fs/cgroup/memory" + path)
        if not controllers and Path("/sys/fs/cgroup/cgroup.controllers").exists():
            return Path("/sys/fs/cgroup" + path)
    return None


class Group:
    """A group with a limit, and the job's own in it, which has none."""

    def __init__(self, name: str) -> None:
        above = own_group()
        if above is None:
            raise OSError("no memory group")
        self.limited = above / f"stepscope-test-{os.getpid()}-{name}"
        self.own = self.limited / "job"
        self.limited.mkdir()
        try:
            two = (self.limited / "memory.max").exists()
            if two:
                (self.limited / "cgroup.subtree_control").write_text("+memory")
            self.own.mkdir()
            limit = self.limited / ("memory.max" if two else "memory.limit_in_bytes")
            limit.write_text(str(LIMIT))
        except OSError:
            self.remove()
            raise
        self.usage = self.limited / ("memory.current" if two else "memory.usage_in_bytes")

    def remove(self) -> None:
        for group in (self.own, self.limited):
            if group.exists():
                group.rmdir()


def why_not() -> str:
    try:
        Group("probe").remove()
    except OSError as error:
        return f"needs memory groups that can be made: {error}"
    return ""


REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)


def observe_in(group: Group, folder: Path, how: str) -> Ran:
    folder.mkdir()
    command = (
        script("hazards.py", "grows")
        if how == "grows"
        else script("full_group.py", group.usage, group.limited / "memory.stat", LIMIT, how)
    )
    enter = f'echo $$ > "{group.own}/cgroup.procs" && exec "$@"'
    run = folder / "run"
    done = subprocess.run(
        [
            "sh",
            "-c",
            enter,
            "sh",
            STEPSCOPE,
            "run",
            "--run-dir",
            str(run),
            "--set",
            f"memory_pressure_warning={WARNING}",
            "--",
            *command,
        ],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    measured = folder / "measured.json"
    values = json.loads(measured.read_text()) if measured.exists() else None
    return Ran(done.returncode, done.stdout, done.stderr, folder, values, run)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ran]]:
    root = tmp_path_factory.mktemp("limit")
    groups = {how: Group(how) for how in ("held", "cached", "grows")}
    try:
        yield together(
            {
                how: lambda how=how, group=group: observe_in(group, root / how, how)
                for how, group in groups.items()
            }
        )
    finally:
        for group in groups.values():
            group.remove()


def pressure(ran: Ran) -> list[dict]:
    found = ran.finished().summary["findings"]
    return [finding for finding in found if finding["code"] == "MEMORY_PRESSURE"]


@pytest.mark.parametrize("how", ["held", "cached"])
def test_D14_the_limit_is_that_of_the_group_above(runs: dict[str, Ran], how: str) -> None:
    assert runs[how].finished().summary["resources"]["memory"]["limit"] == LIMIT


def test_D14_a_full_group_is_memory_pressure(runs: dict[str, Ran]) -> None:
    (finding,) = pressure(runs["held"])
    evidence = {item["name"]: item["value"] for item in finding["evidence"]}
    measured = runs["held"].measured
    assert measured is not None
    assert evidence["memory_limit_bytes"] == LIMIT
    assert abs(evidence["memory_peak_bytes"] - measured["held"]) < 0.05 * LIMIT


def test_D14_page_cache_is_not(runs: dict[str, Ran]) -> None:
    ran = runs["cached"]
    assert pressure(ran) == []
    assert ran.measured is not None
    assert ran.measured["used"] > 0.9 * LIMIT, "the group was full, by its own count"
    peak = ran.summary["resources"]["memory"]["peak"]
    assert peak < WARNING * LIMIT


def test_D15_the_kernels_count_is_the_evidence(runs: dict[str, Ran]) -> None:
    ran = runs["grows"]
    assert ran.code == 1
    assert "DataLoader worker" in ran.stderr
    verdict = ran.summary["verdict"]
    assert verdict["code"] == "MEMORY_KILLED"
    evidence = {item["name"]: item["value"] for item in verdict["evidence"]}
    assert evidence["memory_kills"] == 1
    assert evidence["memory_limit_bytes"] == LIMIT
