"""Compiled models: steps, phases, and what compiling cost, apart from forward."""

from statistics import median

import pytest
from observing import Ran, compare_steps, loop_of, match, observe, script, together, total_of

LOOPS = [
    "compiled_first",
    "compiled_in_mid_run",
    "compiled_in_place",
    "each_block",
    "function_that_calls_the_model",
]
COMPILES_AT = {"compiled_in_mid_run": 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("compiled")
    return together(
        {
            "loops": lambda: observe(root / "loops", script("compiled.py", *LOOPS)),
            "whole_step": lambda: observe(root / "whole_step", script("compiled.py", "whole_step")),
        }
    )


@pytest.fixture(scope="module")
def ran(runs: dict[str, Ran]) -> Ran:
    return runs["loops"]


@pytest.mark.parametrize("name", LOOPS)
def test_steps_and_phases_of_compiled_steps(ran: Ran, name: str) -> None:
    steps, _ = loop_of(ran.finished(), name)
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    at = COMPILES_AT.get(name, 0)
    steady = [(row, step) for row, step in zip(rows, steps, strict=True)][at + 2 :]
    for row, _ in steady:
        assert row["forward_ns"] > 0
        assert row["backward_ns"] > 0
        assert not row["compiled"]
        assert row["compile_ns"] == 0
    phases = ("input", "forward", "backward", "optimizer")
    compare_steps([row for row, _ in steady], [step for _, step in steady], phases)


@pytest.mark.parametrize("name", LOOPS)
def test_compiling_is_taken_out_of_forward(ran: Ran, name: str) -> None:
    """The step that compiles has the others' forward; the rest is compile. The first of the process
    also imports.
    """
    assert ran.finished().measured is not None
    steps, _ = loop_of(ran, name)
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    at = COMPILES_AT.get(name, 0)
    row, step = rows[at], steps[at]
    assert row["compiled"]
    assert row["compile_ns"] / 1e6 >= ran.measured["compile_ms"]
    if name == "compiled_first":
        return
    usual = median(other["phases"]["forward"] for other in steps[at + 2 :])
    expected = step["phases"]["forward"] - usual
    assert row["compile_ns"] == pytest.approx(expected, abs=0.1 * total_of(step))


def test_a_step_compiled_as_a_whole_is_counted_and_its_optimizer_is_not_guessed(
    runs: dict[str, Ran],
) -> None:
    """No optimizer step can be seen in it: what follows backward is no overhead."""
    ran = runs["whole_step"].finished()
    steps, _ = loop_of(ran, "whole_step")
    rows = match(ran.steps(), [step["anchor"] for step in steps])
    assert ran.summary["steps"]["count"] == len(steps)
    compare_steps(rows[2:], steps[2:], ("input",))
    assert all(row["forward_ns"] > 0 and row["backward_ns"] > 0 for row in rows[2:])
    assert rows[0]["compiled"]
    assert rows[0]["compile_ns"] > 0
    optimizer = ran.summary["phases"]["optimizer"]
    assert (optimizer["measured"], optimizer["mean_ms"]) == (False, None)
    assert "OVERHEAD" not in [finding["code"] for finding in ran.summary["findings"]]
