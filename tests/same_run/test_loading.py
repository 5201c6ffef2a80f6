"""Loading is the same with and without stepscope: samples, their order, random states, errors."""

import re

import pytest
from observing import Ran, execute, observe, script, together

WAYS = ("none", "subset", "fork", "persistent", "spawn", "forkserver", "iterable", "iterable_none")
FAULTS = ("raises", "unpicklable", "killed")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("loading")
    commands = {"all": script("workers.py", *WAYS)}
    commands |= {fault: script("workers.py", fault) for fault in FAULTS}
    calls = {}
    for name, command in commands.items():
        calls[name] = lambda n=name, c=command: execute(root / n / "bare", c)
        calls[f"{name}+"] = lambda n=name, c=command: observe(root / n / "seen", c)
    return together(calls)


@pytest.mark.parametrize("way", WAYS)
def test_equal(runs: dict[str, Ran], way: str) -> None:
    bare, seen = runs["all"].finished().measured, runs["all+"].finished().measured
    assert bare is not None
    assert seen is not None
    assert seen["ways"][way] == bare["ways"][way]
    assert seen["open_is"] == bare["open_is"]


@pytest.mark.parametrize("way", WAYS)
def test_each_is_looked_into(runs: dict[str, Ran], way: str) -> None:
    ran = runs["all+"].finished()
    assert ran.measured is not None
    loaders = sorted(ran.summary["loaders"], key=lambda row: row["loader"])
    assert len(loaders) == len(WAYS)
    loader, told = loaders[WAYS.index(way)], ran.measured["ways"][way]
    assert loader["measured"]
    assert loader["epochs"] == told["epochs"]
    assert loader["batches"] == told["batches"]
    if loader["waiting"]["measured"]:
        assert loader["waiting"]["batches"] == loader["batches"]
    names = {t["name"] for t in loader["transforms"]}
    assert "Scale" in names
    assert ("noise" in names) == bool(loader["setup"]["num_workers"]), "plain functions"
    assert loader["setup"]["forked"] == (way not in ("spawn", "forkserver"))
    assert loader["worker_starts"] == {"persistent": 1}.get(
        way, told["epochs"] if loader["setup"]["num_workers"] else 0
    )


def without_noise(text: str) -> str:
    """Of a traceback: no addresses, pids and line numbers (torch's own depend on which worker was
    first), and no card.
    """
    begin = text.find("Traceback")
    text = re.sub(
        r"0x[0-9a-f]+|line \d+|pid\(?s?\)?:? ?\(?\d+\)?", "#", text[begin:] if begin >= 0 else ""
    )
    return re.split(r"\n(?=[A-Z_]+  |stepscope)", text.rstrip())[0].rstrip()


@pytest.mark.parametrize("way", FAULTS)
def test_the_users_error_comes_first_and_unchanged(runs: dict[str, Ran], way: str) -> None:
    bare, seen = runs[way], runs[f"{way}+"]
    assert bare.code == seen.code == 1
    if way == "killed":  # which of two errors it is depends on what the worker was at
        assert re.search(r"DataLoader worker .* (exited|is killed)|Connection", seen.stderr)
    else:
        assert without_noise(seen.stderr) == without_noise(bare.stderr) != ""
