"""A run is the same with and without stepscope: what the script itself can see of it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from observing import Ran, execute, observe, script, together

FACTS = [
    "losses_without_workers",
    "losses_with_workers",
    "losses_with_pauses",
    "interpreter",
    "process",
    "garbage_collector",
    "attributes_of_a_model",
    "deepcopy_runs_its_own_weights",
    "pickle_and_save",
    "jit",
    "fx",
    "export",
    "functional_call",
    "patched_functions",
    "torch_functions",
    "classes_are_freed",
]


def without_addresses(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_addresses(part) for name, part in value.items()}
    if isinstance(value, list):
        return [without_addresses(part) for part in value]
    return re.sub(r"0x[0-9a-f]{6,}", "0x", value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Both in the same folder, with a sitecustomize of the user's own."""
    folder = tmp_path_factory.mktemp("same")
    users = tmp_path_factory.mktemp("users")
    (users / "sitecustomize.py").write_text("MARK = 'the user was here'\n")
    env = {"PYTHONPATH": str(users)}
    return {
        "bare": execute(folder, script("same.py"), env=env),
        "observed": observe(folder, script("same.py"), env=env),
    }


@pytest.mark.parametrize("name", FACTS)
def test_equal(runs: dict[str, Ran], name: str) -> None:
    bare, observed = runs["bare"].finished(), runs["observed"].finished()
    assert bare.measured is not None
    assert observed.measured is not None
    assert observed.measured["observed"]
    assert not bare.measured["observed"]
    assert without_addresses(observed.measured["facts"][name]) == without_addresses(
        bare.measured["facts"][name]
    )


def test_the_users_sitecustomize_has_run(runs: dict[str, Ran]) -> None:
    observed = runs["observed"].finished().measured
    assert observed is not None
    assert observed["facts"]["interpreter"]["mark"] == "the user was here"


def test_stdout_is_the_same(runs: dict[str, Ran]) -> None:
    assert runs["observed"].stdout == runs["bare"].stdout


def test_it_was_observed(runs: dict[str, Ran]) -> None:
    assert runs["observed"].finished().summary["steps"]["count"] > 2000


def test_memory_does_not_grow(runs: dict[str, Ran]) -> None:
    """2000 steps leave as much behind as without us: within a few Python objects and a page or two
    of the allocator.
    """
    bare, observed = runs["bare"].finished().measured, runs["observed"].finished().measured
    assert bare is not None
    assert observed is not None
    grown, without = observed["facts"]["memory"], bare["facts"]["memory"]
    assert grown["blocks"] <= without["blocks"] + 300
    assert grown["bytes"] <= without["bytes"] + (1 << 20)


def test_a_saved_model_loads_where_stepscope_is_absent(runs: dict[str, Ran]) -> None:
    saved = runs["observed"].finished().folder / "model.pt"
    load = (
        "import sys; sys.modules['stepscope'] = None\n"
        "import torch; m = torch.load(sys.argv[1], weights_only=False).eval()\n"
        "print(m(torch.ones(3, 8)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", load, str(saved)], capture_output=True, text=True, check=True
    )
    measured = runs["observed"].measured
    assert measured is not None
    assert eval(done.stdout) == measured["facts"]["pickle_and_save"][-1]


def test_switched_off_it_is_not_there(tmp_path: Path) -> None:
    ran = observe(tmp_path, script("same.py", "interpreter"), env={"STEPSCOPE": "0"}).finished()
    assert ran.measured is not None
    assert not ran.measured["observed"]
    assert not ran.run.exists()
    assert ran.stderr == ""


@pytest.fixture(scope="module")
def dynamo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("dynamo")
    return together(
        {
            "bare": lambda: execute(root / "bare", script("dynamo.py"), timeout=300),
            "observed": lambda: observe(root / "observed", script("dynamo.py"), timeout=300),
        }
    )


CASES = [
    "compiled_first",
    "compiled_after_the_optimizer",
    "compiled_in_mid_run",
    "sequential",
    "compiled_in_place",
    "compiled_in_place_in_mid_run",
    "each_block",
    "checkpointed",
    "checkpointed_inside",
    "checkpointed_blocks",
    "inside_out",
    "function_that_calls_the_model",
    "whole_step",
    "optimizer_step",
    "changes_mode_inside",
    "with_trace_step",
    "to_device_inside",
    "validated_between",
    "another_shape",
    "ddp_of_compiled_1",
    "compiled_ddp_1",
    "ddp_compiled_in_place_1",
    "ddp_of_compiled_2",
    "compiled_ddp_2",
    "ddp_compiled_in_place_2",
]


@pytest.mark.parametrize("name", CASES)
def test_C05_dynamo_counts_the_same(dynamo: dict[str, Ran], name: str) -> None:
    bare, observed = dynamo["bare"].finished().measured, dynamo["observed"].finished().measured
    assert bare is not None
    assert observed is not None
    without, with_us = bare["cases"][name], observed["cases"][name]
    assert with_us["observed"], "no segment: this case shows nothing"
    for what in ("codes", "losses", "graphs", "counters"):
        assert with_us[what] == without[what], what
