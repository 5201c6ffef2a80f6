"""stepscope compare: exit code, stdout and stderr of whole commands, with and without colour."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from cli.commands import stepscope
from observing import ROOT, STEPSCOPE, environment

pytestmark = pytest.mark.fast

RUNS = {
    "before": ["--seed", "1"],
    "after": ["--seed", "2", "--fault", "rank=3 phase=input add=15ms"],
    "again": ["--seed", "3"],
    "few": ["--seed", "4", "--steps", "25"],
    "wide": ["--seed", "5", "--ranks", "8"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    for name, words in RUNS.items():
        options = {"--ranks": "4", "--steps": "200"} | dict(
            zip(words[::2], words[1::2], strict=True)
        )
        flat = [word for pair in options.items() for word in pair]
        done = stepscope(
            folder, "simulate", *flat, "--run-dir", f"stepscope-runs/{name}", "--quiet"
        )
        assert done.code == 0, done.stderr
    return folder


def test_says_what_changed_and_where(runs: Path) -> None:
    done = stepscope(runs, "compare", "before", "after")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("SLOWER  +")
    assert "rank 3 of 4: its own work +1" in done.stdout
    assert re.search(r"^  input .* real$", done.stdout, re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 80
    same = stepscope(runs, "compare", "before", "again")
    assert same.code == 0
    assert same.stdout.startswith("SAME  ")


@pytest.mark.parametrize(
    ("a", "b", "limit", "code", "word"),
    [
        ("before", "after", "5%", 1, "past the limit"),
        ("before", "after", "0.05", 1, "past the limit"),
        ("before", "after", "50 %", 0, "within the limit"),
        ("after", "before", "0%", 0, "within the limit"),
        ("before", "again", "0%", 0, "within the limit"),
    ],
)
def test_is_a_gate(runs: Path, a: str, b: str, limit: str, code: int, word: str) -> None:
    done = stepscope(runs, "compare", a, b, "--max-slowdown", limit)
    assert (done.code, done.stderr) == (code, "")
    assert done.stdout.splitlines()[0].endswith(word)
    assert stepscope(runs, "compare", a, b, "--max-slowdown", limit, "--json").code == code


def test_json_obeys_its_schema_and_adds_up(runs: Path) -> None:
    schema = json.loads((ROOT / "docs/reference/compare.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    found = stepscope(runs, "compare", "before", "after", "--json", "--max-slowdown", "5%").json()
    jsonschema.validate(found, schema)
    jsonschema.validate(stepscope(runs, "compare", "again", "before", "--json").json(), schema)
    assert found["verdict"]["code"] == "SLOWER"
    assert found["from_ranks"] == [3]
    changes = [row["change_ms"] for row in found["phases"].values() if row["change_ms"] is not None]
    assert sum(changes) == pytest.approx(found["step"]["change_ms"])
    for side, name in (("a", "before"), ("b", "after")):
        summary = json.loads((runs / "stepscope-runs" / name / "summary.json").read_text())
        assert found[side]["mean_ms"] == summary["steps"]["mean_ms"]
        assert found["step"][f"{side}_ms"] == pytest.approx(summary["steps"]["mean_ms"])


def test_takes_what_ci_downloads(runs: Path, tmp_path: Path) -> None:
    """A folder from elsewhere, read-only, or one of its files."""
    copy = tmp_path / "artifact"
    shutil.copytree(runs / "stepscope-runs" / "before", copy)
    for file in copy.iterdir():
        file.chmod(0o444)
    want = stepscope(runs, "compare", "before", "again").stdout
    other = str(runs / "stepscope-runs" / "again")
    for word in (str(copy), str(copy / "run.db"), str(copy / "summary.json")):
        done = stepscope(tmp_path, "compare", word, other)
        assert done.code == 0, done.stderr
        assert done.stdout == want
    (copy / "run.db").unlink()
    done = stepscope(tmp_path, "compare", str(copy), other)
    assert done.code == 2
    assert "no run.db" in done.stderr
    assert "hint: keep the whole run folder" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["before", "few"], "stepscope: A and B cannot be compared: B has 15 steady steps, 20 are"),
        (["before", "wide"], "stepscope: a step is not the same work in A and B: 4 ranks in A, 8"),
        (["before", "nowhere"], "stepscope: there is no run nowhere"),
        (["before"], "stepscope: stepscope compare: B is required"),
        (["before", "again", "--max-slowdown", "5"], "stepscope: --max-slowdown 5 is no share"),
        (["before", "again", "--max-slowdown", "x%"], "is no share of a step"),
        (["before", "again", "--max-slowdown", "-3%"], "is no share of a step"),
    ],
)
def test_errors(runs: Path, words: list[str], said: str) -> None:
    done = stepscope(runs, "compare", *words)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "\nhint: " in done.stderr
    assert done.stderr.count("\n") == 2


def test_anyway(runs: Path) -> None:
    done = stepscope(runs, "compare", "before", "wide", "--anyway")
    assert done.code == 0
    assert "not the same  4 ranks in A, 8 in B" in done.stdout


def test_colour_is_for_terminals_and_says_nothing_more(runs: Path) -> None:
    def on_terminal(env: dict[str, str]) -> str:
        host, terminal = pty.openpty()
        words = [STEPSCOPE, "compare", "before", "after", "--max-slowdown", "5%"]
        subprocess.run(words, cwd=runs, env=environment(runs, env), stdout=terminal, check=False)
        os.close(terminal)
        out = b""
        try:
            while chunk := os.read(host, 65536):
                out += chunk
        except OSError:  # nobody holds the other end any more
            pass
        os.close(host)
        return out.decode().replace("\r\n", "\n")

    coloured = on_terminal({"TERM": "xterm"})
    assert "\x1b[1;31mSLOWER\x1b[0m" in coloured
    plain = stepscope(runs, "compare", "before", "after", "--max-slowdown", "5%").stdout
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert on_terminal({"TERM": "xterm", "NO_COLOR": "1"}) == plain
