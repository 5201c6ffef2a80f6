"""A loop that loses time in one place: it appears in that phase, in no other, and the verdict says
so.
"""

import pytest
from observing import Ran, check_summary, observe, script, together

pytestmark = pytest.mark.alone

# name: (options of phases.py, verdict, phase, severity)
LOST = {
    "input": ("--input 12 --forward 4", "INPUT_BOUND", "input", "critical"),
    "input_of_workers": ("--input 24 --workers 2 --forward 2", "INPUT_BOUND", "input", "critical"),
    "forward": ("--forward 12 --loss 4 --busy", "COMPUTE_BOUND", None, "info"),
    "backward": ("--backward 14", "COMPUTE_BOUND", None, "info"),
    "optimizer": ("--forward 6 --optimizer 10", "OPTIMIZER_BOUND", "optimizer", "critical"),
    "checkpoint": ("--forward 8 --checkpoint 40 --every 6", "OVERHEAD", "checkpoint", "critical"),
    "validation": ("--forward 8 --validation 60 --epochs 6", "OVERHEAD", "validation", "critical"),
    "gc": ("--forward 8 --gc 6", "OVERHEAD", "gc", "critical"),
    "before_forward": ("--forward 8 --before-forward 6", "OVERHEAD", "other", "critical"),
    "after_backward": ("--forward 8 --after-backward 6", "OVERHEAD", "other", "critical"),
    "between_steps": ("--forward 8 --after-optimizer 6", "OVERHEAD", "other", "critical"),
    "everywhere": (
        "--input 5 --before-forward 1 --forward 4 --loss 2 --backward 6 --after-backward 1 "
        "--optimizer 3 --after-optimizer 1 --checkpoint 2 --validation 12 --epochs 6 --gc 1",
        None,
        None,
        None,
    ),
    "nothing_stands_out": (
        "--input 1.4 --before-forward 1.4 --forward 9 --backward 4 --after-backward 1.4 "
        "--optimizer 2 --after-optimizer 1.4",
        "NO_BOTTLENECK",
        None,
        "info",
    ),
    "too_short": ("--input 12 --steps 24", "INSUFFICIENT_DATA", None, "info"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("phases")
    return together(
        {
            name: lambda name=name: observe(
                root / name, script("phases.py", *LOST[name][0].split())
            )
            for name in LOST
        },
        at_once=3,
    )


@pytest.mark.parametrize("name", LOST)
def test_what_was_lost_is_in_its_phase_and_in_no_other(runs: dict[str, Ran], name: str) -> None:
    ran = runs[name].finished()
    assert ran.measured is not None
    check_summary(ran.summary, ran.measured["steps"])


@pytest.mark.parametrize("name", [name for name, (_, verdict, _, _) in LOST.items() if verdict])
def test_verdict(runs: dict[str, Ran], name: str) -> None:
    _, code, phase, severity = LOST[name]
    summary = runs[name].finished().summary
    verdict = summary["verdict"]
    assert (verdict["code"], verdict["severity"]) == (code, severity)
    if phase is not None:
        assert verdict["phase"] == phase
        assert verdict["confidence"] == "certain"
        share = summary["phases"][phase]["share"]
        # those, and the starts of workers, are counted by occurrence, over the whole run
        if phase not in ("checkpoint", "validation", "other") and name != "input_of_workers":
            assert verdict["share"] == pytest.approx(share, abs=0.05)
            cost = verdict["cost_ms_per_step"]
            assert cost == pytest.approx(summary["phases"][phase]["mean_ms"], rel=0.1)
    assert verdict in summary["findings"]


@pytest.mark.parametrize("name", ["before_forward", "after_backward", "between_steps"])
def test_the_place_within_other_stands_in_evidence(runs: dict[str, Ran], name: str) -> None:
    place = name.replace("between_steps", "after_optimizer")
    evidence = runs[name].finished().summary["verdict"]["evidence"]
    assert any(place in item["name"] for item in evidence), evidence


def test_a_short_run_names_what_it_lacks(runs: dict[str, Ran]) -> None:
    summary = runs["too_short"].finished().summary
    assert summary["verdict"]["not_measured"] or "20" in str(summary["verdict"]), summary["verdict"]
    assert summary["steps"]["count"] == 24


def test_workers_start_is_input_flagged_as_epoch_start(runs: dict[str, Ran]) -> None:
    ran = runs["input_of_workers"].finished()
    first_of_epochs = [row for row in ran.steps() if row["epoch_start_ns"] > 0]
    assert len(first_of_epochs) == 2
    for row in first_of_epochs:
        assert row["epoch_start_ns"] <= row["input_ns"]
    evidence = ran.summary["verdict"]["evidence"]
    assert any("epoch_start" in item["name"] for item in evidence), evidence


def test_one_rank_has_no_sync_and_says_so(runs: dict[str, Ran]) -> None:
    for ran in runs.values():
        for phase in ("sync", "h2d"):
            assert ran.finished().summary["phases"][phase]["mean_ms"] in (None, 0.0)
        assert ran.summary["ranks"][0]["rank"] == 0
        assert ran.summary["ranks"][0]["steps"] == ran.summary["steps"]["count"]


def test_the_first_line_of_the_card_is_the_verdict(runs: dict[str, Ran]) -> None:
    for name, ran in runs.items():
        card = (ran.finished().run / "summary.txt").read_text()
        assert card.splitlines()[0].startswith(ran.summary["verdict"]["code"]), name
        assert card.strip() in ran.stderr, name
        assert all(len(line) <= 80 for line in card.splitlines()), name


def test_throughput_counts_samples(runs: dict[str, Ran]) -> None:
    ran = runs["everywhere"].finished()
    assert ran.measured is not None
    steady = ran.measured["steps"][ran.summary["steps"]["warmup"] :]
    seconds = sum(step["end"] - step["begin"] for step in steady) / 1e9
    per_second = len(steady) / seconds
    throughput = ran.summary["throughput"]
    assert throughput["steps_per_s"] == pytest.approx(per_second, rel=0.05)
    assert throughput["samples_per_s"] == pytest.approx(4 * per_second, rel=0.05)
