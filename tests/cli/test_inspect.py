"""stepscope inspect data: on odd folders, with what it leaves, and what it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path
from stat import S_ISREG

import pytest
from cli.commands import stepscope

pytestmark = pytest.mark.fast


def below(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(path): path.lstat() for path in [folder, *sorted(folder.rglob("*"))]}
    return {  # the kernel itself notes that a link was followed
        name: (stat.st_mtime_ns, stat.st_atime_ns * S_ISREG(stat.st_mode), stat.st_size)
        for name, stat in found.items()
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for i in range(60):
        path = folder / f"class-{i % 3}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(2000))
        with path.open("rb") as file:
            os.fsync(file.fileno())  # pages that are not written yet stay in the page cache
    os.mkfifo(folder / "pipe")
    (folder / "around").symlink_to(folder)
    return folder


def test_what_it_measures_and_leaves(data: Path) -> None:
    before = below(data)
    done = stepscope(data.parent, "inspect", "data", str(data), "--json")
    assert (done.code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert found["found"] | {"bytes": 120_000, "files": 60, "special": 1} == found["found"]
    for name in ("random", "in_order", "warm"):
        assert found[name]["files"] == 60, found[name]
        assert found[name]["bytes"] == 120_000
    assert found["sizes"]["p50_bytes"] == 2000
    packed = found["packed"]
    assert packed["not_measured"] or packed["bytes"] == 120_000
    assert (found["packing_saves"] is None) == (found["not_compared"] is not None)
    assert below(data) == before
    assert [path.name for path in data.parent.iterdir()] == ["data"]


def test_a_table_for_people(data: Path) -> None:
    done = stepscope(data.parent, "inspect", "data", "data", "--seconds", "2")
    assert (done.code, done.stderr) == (0, "")
    for words in ("random, warm", "60 files in 4 folders", "median 2 kB", "not opened"):
        assert words in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = stepscope(tmp_path, "inspect", "data", "empty")
    assert done.code == 0
    assert done.stdout.startswith("NOT COMPARED  there is no file")
    for words in (["data", "missing"], ["data", "/dev/null"], ["data"], ["dat", "empty"], []):
        done = stepscope(tmp_path, "inspect", *words)
        assert done.code == 2
        assert "hint: " in done.stderr
