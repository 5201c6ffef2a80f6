"""stepscope simulate: straight into the engine, and through the wire to a real hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.commands import hub, stepscope, summary_in

pytestmark = pytest.mark.fast

RUN = ["--ranks", "32", "--steps", "200", "--fault", "rank=17 phase=input add=40ms from=100"]


def node(folder: Path, url: str, token: str, *arguments: str) -> list[str]:
    (folder / "token").write_text(token)
    (folder / "token").chmod(0o600)
    return ["simulate", *arguments, "--hub", url, "--token-file", "token"]


def test_a_hub_says_what_the_engine_says(tmp_path: Path) -> None:
    token = "a-token-of-the-tests-0123456789"
    straight = stepscope(tmp_path, "simulate", *RUN, "--run-dir", "straight")
    assert straight.code == 0, straight.stderr
    with hub(tmp_path, token) as url:
        joined = stepscope(tmp_path, *node(tmp_path, url, token, *RUN, "--run-dir", "joined"))
        assert joined.code == 0, joined.stderr
    want = summary_in(tmp_path / "straight")
    for folder in ("joined", "of-hub"):
        found = summary_in(tmp_path / folder)
        assert found["run"]["ranks"] == 32
        assert found["run"]["nodes"] == 4
        assert found["steps"]["count"] == 200
        for field in ("code", "rank", "phase", "pattern", "first_step", "last_step", "ended"):
            assert found["verdict"][field] == want["verdict"][field], (folder, field)
    assert want["verdict"]["code"] == "STRAGGLER"
    assert want["verdict"]["rank"] == 17
    assert token not in "".join((tmp_path / "of-hub" / "summary.json").read_text())


def test_a_wrong_token_is_refused_and_named(tmp_path: Path) -> None:
    with hub(tmp_path, "a-token-of-the-tests-0123456789") as url:
        words = node(
            tmp_path, url, "another-token-0123456789abcdef", "--ranks", "8", "--steps", "20"
        )
        done = stepscope(tmp_path, *words)
    assert done.code == 2
    assert "token" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--fault", "rank=9999 add=5ms"],
        ["--fault", "nonsense"],
        ["--hub", "http://127.0.0.1:1"],
        ["--hub", "ftp://127.0.0.1", "--token-file", "token"],
    ],
)
def test_wrong_use(tmp_path: Path, words: list[str]) -> None:
    done = stepscope(tmp_path, "simulate", "--ranks", "8", "--steps", "20", *words)
    assert done.code == 2
    assert "hint:" in done.stderr or "stepscope:" in done.stderr
