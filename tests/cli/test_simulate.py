"""stepscope simulate: straight into the engine, and through the wire to a real hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli.commands import stepscope, summary_in
from cli.hubs import hub, node

pytestmark = pytest.mark.fast

RUN = ["--ranks", "32", "--steps", "200", "--fault", "rank=17 phase=input add=40ms from=100"]


def alike(one: Any, other: Any, *, rel: float) -> bool:
    """Equal, but for a share `rel` of what is measured; titles hold rounded numbers."""
    if isinstance(one, float) and isinstance(other, int | float):
        return other == pytest.approx(one, rel=rel, abs=10 * rel)
    if isinstance(one, dict) and isinstance(other, dict):
        names = one.keys() - {"title"}
        return one.keys() == other.keys() and all(alike(one[n], other[n], rel=rel) for n in names)
    if isinstance(one, list) and isinstance(other, list):
        same = len(one) == len(other)
        return same and all(alike(x, y, rel=rel) for x, y in zip(one, other, strict=True))
    return one == other


def test_a_hub_says_what_the_engine_says_whatever_the_clocks_show(tmp_path: Path) -> None:
    """R15: ranks' clocks set apart by up to two days and drifting by 200 ppm, straight and through
    the wire, where the ranks are compared as their steps come.
    """
    token = "a-token-of-the-tests-0123456789"
    clocks = {"exact": ("0", "0"), "apart": ("48", "200")}
    words = {n: ["--clock-hours", h, "--clock-ppm", p] for n, (h, p) in clocks.items()}
    for name in clocks:
        done = stepscope(tmp_path, "simulate", *RUN, *words[name], "--run-dir", name)
        assert done.code == 0, done.stderr
    with hub(tmp_path, token) as url:
        joined = stepscope(
            tmp_path, *node(tmp_path, url, token, *RUN, *words["apart"], "--run-dir", "joined")
        )
        assert joined.code == 0, joined.stderr
    want = summary_in(tmp_path / "exact")
    assert want["verdict"]["code"] == "STRAGGLER"
    assert want["verdict"]["rank"] == 17
    for folder, rel in {"apart": 5e-3, "joined": 1e-2, "of-hub": 1e-2}.items():
        found = summary_in(tmp_path / folder)
        assert found["run"]["ranks"] == 32
        assert found["run"]["nodes"] == 4
        assert found["steps"]["count"] == 200
        for mine, its in zip(want["findings"], found["findings"], strict=True):
            assert alike(mine, its, rel=rel), (folder, mine, its)
        for mine, its in zip(want["ranks"], found["ranks"], strict=True):
            assert alike(mine["phases"], its["phases"], rel=5e-3), folder
    times = [row["begin_ns"] for row in stepscope_rows(tmp_path / "of-hub")]
    assert max(times) - min(times) > 24 * 3600e9  # the clocks were apart
    assert token not in (tmp_path / "of-hub" / "summary.json").read_text()


def stepscope_rows(run: Path) -> list[dict[str, Any]]:
    import stepscope as product

    return product.load(run).steps


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
