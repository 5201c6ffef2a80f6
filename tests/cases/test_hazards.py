"""What ends a run or spoils its data without making it slow: it is said, and nothing like it is."""

from pathlib import Path

import pytest
from observing import Ran, observe, script, together
from test_environment import in_own_mounts, mounts, run_of

CODES = ("REPEATED_SAMPLES", "FORKED_HANDLES", "FILES_PRESSURE", "SHM_PRESSURE", "MEMORY_KILLED")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("hazards")
    kinds = ("repeats", "splits", "handles", "lazy", "files", "killed")
    return together(
        {kind: lambda kind=kind: observe(root / kind, script("hazards.py", kind)) for kind in kinds}
    )


def hazards(ran: Ran) -> set[str]:
    return {finding["code"] for finding in ran.summary["findings"]} & set(CODES)


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("repeats", {"REPEATED_SAMPLES"}),
        ("splits", set()),
        ("handles", {"FORKED_HANDLES"}),
        ("lazy", set()),
        ("files", {"FILES_PRESSURE"}),
    ],
)
def test_D08_D09_D11(runs: dict[str, Ran], kind: str, codes: set[str]) -> None:
    assert hazards(runs[kind].finished()) == codes


def test_D11_is_what_the_script_saw(runs: dict[str, Ran]) -> None:
    repeated, split = runs["repeats"].measured, runs["splits"].measured
    assert repeated is not None
    assert split is not None
    assert repeated["seen"] == 2 * repeated["different"]
    assert split["seen"] == split["different"]


def test_D15_a_killed_worker_is_no_lack_of_memory(runs: dict[str, Ran]) -> None:
    ran = runs["killed"]
    assert ran.code == 1
    assert "DataLoader worker" in ran.stderr
    assert hazards(ran) == set()


@mounts
def test_D07_a_shm_that_is_too_small_is_foreseen(tmp_path: Path) -> None:
    mount = "mount -t tmpfs -o size=64m none /dev/shm"
    ran = in_own_mounts(tmp_path, mount, run_of(tmp_path, *script("hazards.py", "shm"))).finished()
    assert hazards(ran) == {"SHM_PRESSURE"}
    (finding,) = [f for f in ran.summary["findings"] if f["code"] == "SHM_PRESSURE"]
    evidence = {item["name"]: item["value"] for item in finding["evidence"]}
    batch = 4 << 20
    assert batch <= evidence["batch_bytes"] <= 1.01 * batch
    assert evidence["shm_need_bytes"] == pytest.approx(evidence["batch_bytes"] * (2 * 8 + 1))
    assert evidence["shm_size_bytes"] == 64 << 20
