"""Memory that grows, memory that is shared, and files and processes that must not grow."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from observing import Ran, observe, script, together

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("memory")
    return together(
        {
            way: lambda way=way: observe(root / way, script("memory.py", way))
            for way in ("losses", "shared")
        },
        at_once=3,
    )


def creep(ran: Ran) -> dict[str, float]:
    found = [
        finding
        for finding in ran.finished().summary["findings"]
        if finding["code"] == "MEMORY_CREEP"
    ]
    assert len(found) == 1, ran.summary["findings"]
    return found[0]


def test_M01_losses_kept_with_their_graph_are_memory_creep(runs: dict[str, Ran]) -> None:
    finding = creep(runs["losses"])
    text = str(finding)
    assert "process" in text
    assert finding["severity"] in ("warning", "critical")
    measured = runs["losses"].measured
    assert measured is not None
    per_step = [item for item in finding["evidence"] if item["unit"] == "bytes/step"]
    assert per_step
    assert per_step[0]["value"] >= 0.5 * measured["kept"] / measured["steps"]


def test_D06_what_workers_share_is_counted_once(runs: dict[str, Ran]) -> None:
    ran = runs["shared"].finished()
    assert ran.measured is not None
    memory = ran.summary["resources"]["memory"]
    held = ran.measured["held"]
    assert memory["measured"]
    assert held < memory["peak"] < 4 * held, (
        "five processes hold the same object; a sum of RSS would pass 5 times it"
    )
    assert "MEMORY_CREEP" not in {finding["code"] for finding in ran.summary["findings"]}
    with sqlite3.connect(ran.run / "run.db") as database:
        query = "SELECT worker_pss_bytes FROM memory WHERE worker_pss_bytes IS NOT NULL"
        of_workers = [row[0] for row in database.execute(query)]
    assert of_workers
    assert max(of_workers) < 4 * held


def agents() -> dict[int, int]:
    """Resident bytes of each living agent."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"agent" in words[:3] and b"stepscope" in words[0]:
                found[int(folder.name)] = int(
                    (folder / "statm").read_text().split()[1]
                ) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return found


def test_M11_a_very_long_run_keeps_memory_and_files_bounded(tmp_path: Path, cpp_loop: str) -> None:
    """200,000 steps: the agent grows no more after a fifth of them, and run.db stays small."""
    from observing import STEPSCOPE, environment

    before = set(agents())
    process = subprocess.Popen(
        [
            STEPSCOPE,
            "run",
            "--quiet",
            "--run-dir",
            str(tmp_path / "run"),
            "--",
            cpp_loop,
            "200000",
            "input=0.01",
            "forward=0.01",
        ],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    sizes: dict[int, int] = {}
    for i, _ in enumerate(process.stdout):
        if i and i % 20_000 == 0:
            sizes[i] = max((size for pid, size in agents().items() if pid not in before), default=0)
    assert process.wait(60) == 0
    import stepscope

    run = stepscope.load(tmp_path / "run")
    assert run.summary is not None
    steps = run.summary["steps"]
    dropped = run.summary["stepscope"]["records_dropped"]
    assert steps["count"] == 200_000 or dropped > 0
    assert len(run.steps) <= 2_100
    early, late = sizes[40_000], sizes[180_000]
    assert early > 0
    assert late <= 1.25 * early + (2 << 20), sizes
    assert late <= 40 << 20, sizes
    assert (tmp_path / "run" / "run.db").stat().st_size <= 20 << 20


def test_D17_no_thread_of_ours_and_forks_in_mid_run_lose_nothing(tmp_path: Path) -> None:
    """Forked children that compute, train or start others: all end well, and every step of the
    parent is there.
    """
    ran = observe(tmp_path, script("forks.py")).finished()
    assert ran.measured is not None
    assert ran.measured["codes"] == list(range(6))
    anchors = [step["anchor"] for step in ran.measured["steps"]]
    rows = ran.steps()
    for anchor in anchors:
        assert [
            row for row in rows if row["begin_ns"] <= anchor < row["end_ns"] and not row["failed"]
        ], anchor
    assert ran.summary["ranks"][0]["steps"] >= len(anchors)


def test_D13_affinity_limits_the_cores(tmp_path: Path) -> None:
    one = sorted(os.sched_getaffinity(0))[0]
    command = [
        sys.executable,
        "-c",
        f"import os, sys; os.sched_setaffinity(0, {{{one}}}); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    from observing import STEPSCOPE, execute

    whole = [
        *command,
        STEPSCOPE,
        "run",
        "--run-dir",
        str(tmp_path / "run"),
        "--",
        *script("phases.py", "--input", "30"),
    ]
    ran = execute(tmp_path, whole).finished()
    cpu = ran.summary["resources"]["cpu"]
    assert cpu["limit"] == 1
    assert "affinity" in (cpu["note"] or "")
