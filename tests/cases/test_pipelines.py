"""Why input is slow: pipelines of a known fault get the cause that they were made with."""

from typing import Any

import pytest
from observing import Ran, observe, script, together, torchrun

pytestmark = pytest.mark.alone

# name -> (cause, words that the finding must say); None: no INPUT_BOUND
FAULTS: dict[str, tuple[str, str] | None] = {
    "sleep_in_read": ("STORAGE_BOUND", "opening and reading take"),
    "cpu_in_decode": ("DECODE_BOUND", "decoding takes"),
    "slow_transform": ("SLOW_TRANSFORM", "Resize takes"),
    "tiny_files": ("STORAGE_BOUND", "opening and reading take"),
    "large_hand_over": ("HANDOVER_BOUND", "handing batches over"),
    "restart_each_epoch": ("WORKER_RESTART", "starts anew"),
    "one_slow_worker": ("SLOW_WORKER", "worker 1 takes"),
    "gil_transform": ("GIL_BOUND", "interpreter lock"),
    "too_many_workers": ("TOO_MANY_WORKERS", "6 workers share 1 core"),
    "input_fine": None,
    "loads_itself": ("TOO_FEW_WORKERS", "the training process makes its batches itself"),
    "slow_transform_itself": ("SLOW_TRANSFORM", "Resize takes"),
    "uneven": ("UNEVEN_SAMPLES", "times as long"),
}
OF_TWO_RANKS = ("slow_transform",)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("pipelines")
    calls = {
        name: lambda name=name: observe(root / name, script("pipelines.py", name))
        for name in FAULTS
    }
    return together(calls)


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("pipelines2")
    calls = {
        name: lambda name=name: observe(root / name, torchrun(2, "pipelines.py", name))
        for name in OF_TWO_RANKS
    }
    return together(calls, at_once=1)


def input_bound(ran: Ran) -> dict[str, Any] | None:
    found = ran.finished().summary["findings"]
    return next((f for f in found if f["code"] == "INPUT_BOUND"), None)


def check(ran: Ran, fault: tuple[str, str] | None) -> None:
    finding = input_bound(ran)
    if fault is None:  # on a machine that is busy otherwise the worker may come too late
        assert ran.measured is not None
        assert finding is None or ran.measured["waited_share"] > 0.1, finding
        return
    cause, words = fault
    assert finding is not None, ran.summary["findings"]
    told = (finding["cause"], finding["title"], finding["evidence"], ran.summary["loaders"])
    assert finding["cause"] == cause, told
    assert words in finding["title"], told
    assert finding["advice"], told
    assert all(advice["not_if"] for advice in finding["advice"])
    assert 0 < finding["predicted_saving"] <= 1


@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_is_named(runs: dict[str, Ran], name: str) -> None:
    check(runs[name], FAULTS[name])


@pytest.mark.parametrize("name", OF_TWO_RANKS)
def test_likewise_with_two_ranks(of_two: dict[str, Ran], name: str) -> None:
    check(of_two[name], FAULTS[name])
    loaders = of_two[name].summary["loaders"]
    assert [loader["rank"] for loader in loaders] == [0, 1]
    assert all(loader["transforms"][0]["name"] == "Resize" for loader in loaders)


def test_where_the_time_goes_is_told(runs: dict[str, Ran]) -> None:
    ran = runs["slow_transform"].finished()
    assert ran.measured is not None
    (loader,) = ran.summary["loaders"]
    assert loader["dataset"] == "Subset"
    assert loader["setup"]["num_workers"] == 1
    assert loader["setup"]["forked"]
    assert loader["batches"] == ran.measured["batches"]
    assert loader["waiting"]["batches"] == ran.measured["batches"]
    names = [t["name"] for t in loader["transforms"]]
    assert names[0] == "Resize"
    assert set(names) == {"Resize", "Normalize", "flip"}
    assert loader["transforms"][0]["share"] >= 0.6
    (worker,) = loader["workers"]
    assert worker["processes"] == 1
    assert worker["samples"] == 240


def test_more_workers_are_the_second_advice(runs: dict[str, Ran]) -> None:
    finding = input_bound(runs["slow_transform_itself"])
    assert finding is not None
    texts = [advice["text"] for advice in finding["advice"]]
    assert "Resize" in texts[0]
    assert not any("num_workers" in text for text in texts[:1])


def test_workers_that_restart_are_one_row(runs: dict[str, Ran]) -> None:
    (loader,) = runs["restart_each_epoch"].finished().summary["loaders"]
    assert loader["worker_starts"] == loader["epochs"] == 8
    assert loader["workers"][0]["processes"] == 8
    assert loader["batches"] == 48
