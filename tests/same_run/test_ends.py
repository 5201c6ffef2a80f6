"""The end of a run is the child's own: exit code, stdout, and its words on stderr before ours."""

import signal
import subprocess
from pathlib import Path

import pytest
from observing import STEPSCOPE, Ran, environment, execute, observe, script, together

# way of ends.py: exit code of `stepscope run`
WAYS = {
    "ok": 0,
    "exit_3": 3,
    "exit_text": 1,
    "os_exit": 7,
    "raise": 1,
    "handled": 5,
    "raise_in_input": 1,
    "raise_in_forward": 1,
    "raise_in_backward": 1,
    "raise_in_optimizer": 1,
    "SIGTERM": 128 + signal.SIGTERM,
    "SIGINT": 128 + signal.SIGINT,
    "SIGKILL": 128 + signal.SIGKILL,
}
SPEAK = [
    "exit_text",
    "raise",
    "raise_in_input",
    "raise_in_forward",
    "raise_in_backward",
    "raise_in_optimizer",
    "SIGINT",
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    root = tmp_path_factory.mktemp("ends")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
    calls = {
        f"bare {way}": lambda way=way: execute(root / "bare" / way, script("ends.py", way))
        for way in ("ok", "handled", *SPEAK)
    }
    calls |= {way: lambda way=way: observe(root / way, script("ends.py", way)) for way in WAYS}
    return together(calls, at_once=3)


@pytest.mark.parametrize("way", WAYS)
def test_M10_exit_code_is_the_childs(runs: dict[str, Ran], way: str) -> None:
    if f"bare {way}" in runs:
        bare = runs[f"bare {way}"].code
        assert WAYS[way] == (bare if bare >= 0 else 128 - bare)
    assert runs[way].code == WAYS[way]
    assert runs[way].summary["run"]["exit_code"] == WAYS[way]


@pytest.mark.parametrize("way", WAYS)
def test_stdout_is_the_same(runs: dict[str, Ran], way: str) -> None:
    bare = runs.get(f"bare {way}", runs["bare ok"])
    assert runs[way].stdout == bare.stdout


@pytest.mark.parametrize("way", WAYS)
def test_M10_what_it_says_on_stderr_stands_before_ours(runs: dict[str, Ran], way: str) -> None:
    bare = runs.get(f"bare {way}")
    said = bare.stderr if bare is not None else ""
    assert bool(said) == (way in SPEAK)
    assert runs[way].stderr.startswith(said)
    ours = runs[way].stderr.removeprefix(said)
    assert "Traceback" not in ours
    assert "stepscope" not in said


@pytest.mark.parametrize("way", WAYS)
def test_finished_steps_are_in_the_summary(runs: dict[str, Ran], way: str) -> None:
    steps = runs[way].summary["steps"]
    finished = runs[way].stdout.count("step ")
    assert finished in (3, 4)
    assert steps["count"] == finished
    raised = way in ("raise_in_forward", "raise_in_backward", "raise_in_optimizer")
    assert steps["failed"] in ((0, 1) if raised else (0,))


def test_sigterm_to_the_supervisor_ends_the_child(tmp_path: Path) -> None:
    command = [
        STEPSCOPE,
        "run",
        "--run-dir",
        str(tmp_path / "run"),
        "--",
        *script("ends.py", "wait"),
    ]
    run = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    lines = []
    while not lines or "waiting" not in lines[-1]:
        lines.append(run.stdout.readline())
        assert lines[-1], run.communicate()[1]
    run.terminate()
    _, said = run.communicate(timeout=30)
    assert run.returncode == 128 + signal.SIGTERM
    ran = Ran(run.returncode, "", said, tmp_path, None, tmp_path / "run")
    assert ran.summary["steps"]["count"] == 4
    assert ran.summary["verdict"]["code"] in said
