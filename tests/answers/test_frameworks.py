"""Loops that a framework runs: transformers.Trainer and lightning.Trainer."""

from statistics import median

import pytest
from observing import Ran, match, observe, script, together

SCRIPTS = {"trainer": "trainer.py", "lightning": "lit.py"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("frameworks")
    return together(
        {name: lambda name=name: observe(root / name, script(SCRIPTS[name])) for name in SCRIPTS}
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_steps_are_counted(runs: dict[str, Ran], name: str) -> None:
    ran = runs[name].finished()
    assert ran.measured is not None
    anchors = ran.measured["anchors"]
    assert ran.summary["steps"]["count"] == len(anchors) == 24
    assert ran.summary["steps"]["failed"] == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_phases_hold_what_the_model_and_the_data_lose(runs: dict[str, Ran], name: str) -> None:
    """What the script puts there on purpose is a lower bound; what is asked is that no other phase
    has it.
    """
    ran = runs[name].finished()
    assert ran.measured is not None
    usual = {
        phase: median(row[f"{phase}_ns"] for row in ran.steps()[4:]) / 1e6
        for phase in (
            "input",
            "forward",
            "backward",
            "optimizer",
            "other",
            "validation",
            "checkpoint",
            "sync",
        )
    }
    micro = ran.measured["micro_batches"]
    for phase in ("input", "forward", "backward"):
        lost = micro * ran.measured[f"{phase}_ms"]
        assert lost <= usual[phase], usual
    total = median(row["step_time_ns"] for row in ran.steps()[4:]) / 1e6
    lost = micro * sum(ran.measured[f"{phase}_ms"] for phase in ("input", "forward", "backward"))
    # its own loop is the rest: optimizer, callbacks, logging
    assert sum(usual[phase] for phase in ("input", "forward", "backward")) <= total
    assert usual["other"] + usual["optimizer"] <= total - lost
    assert usual["validation"] == usual["checkpoint"] == usual["sync"] == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_validation_and_checkpoint_are_seen(runs: dict[str, Ran], name: str) -> None:
    ran = runs[name].finished()
    rows = ran.steps()
    assert sum(row["validation_ns"] > 0 for row in rows) >= 2
    assert any(row["checkpoint_ns"] > 0 for row in rows)


def test_lightnings_steps_hold_their_anchors(runs: dict[str, Ran]) -> None:
    ran = runs["lightning"].finished()
    assert ran.measured is not None
    match(ran.steps(), ran.measured["anchors"][:-1])
