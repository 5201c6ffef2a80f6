"""The Python package: what importing it does, and what its functions accept and refuse."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import stepscope
from observing import environment

pytestmark = pytest.mark.fast


def python(code: str, folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, env),
        check=False,
    )


def test_importing_imports_no_torch_and_starts_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, threading, os\n"
        "before = set(os.listdir('/proc/self/task'))\n"
        "import stepscope\n"
        "heavy = {'torch', 'numpy', 'lightning'}\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in heavy]\n"
        "assert set(os.listdir('/proc/self/task')) == before\n"
        "assert threading.active_count() == 1\n"
        "assert not [path for path in os.listdir('.')]\n"
        "print(sorted(stepscope.__all__))"
    )
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("trace_step", "phase", "pause", "resume", "load", "identify_stragglers"):
        assert name in done.stdout
    assert done.stderr == ""


def test_off_it_does_nothing_and_says_nothing(tmp_path: Path) -> None:
    code = (
        "import stepscope\n"
        "with stepscope.trace_step(None), stepscope.phase('input'), stepscope.phase('mine'):\n"
        "    print('in')\n"
        "stepscope.pause(); stepscope.resume()"
    )
    done = python(code, tmp_path, STEPSCOPE="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "in\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_block_lets_exceptions_through(tmp_path: Path) -> None:
    code = (
        "import stepscope\n"
        "try:\n"
        "    with stepscope.trace_step(), stepscope.phase('mine'): raise KeyError('x')\n"
        "except KeyError as error: print(error.args)"
    )
    done = python(code, tmp_path, STEPSCOPE="0")
    assert (done.returncode, done.stdout) == (0, "('x',)\n")


@pytest.mark.parametrize("name", [3, None, b"input", ["input"]])
def test_a_phase_name_is_a_string(name: object) -> None:
    with pytest.raises(TypeError):
        stepscope.phase(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32])
def test_a_phase_name_has_1_to_63_bytes(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        stepscope.phase(name)


def test_phases_need_no_run(tmp_path: Path) -> None:
    """Outside any run a phase is only a block, under however many names."""
    code = (
        "import stepscope\n"
        "for i in range(200):\n"
        "    with stepscope.phase(f'p{i}'): pass\n"
        "with stepscope.phase('p0'), stepscope.phase('input'): print('in')\n"
    )
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "in\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("times", "options", "expected"),
    [
        ([1, 1, 1, 10], {}, [3]),
        ({0: 1.0, 5: 1.0, 9: 1.0, 7: 30.0}, {}, [7]),
        ([1, 1000], {}, []),  # the mean moves with the culprit
        ([1, 1000], {"method": "median"}, [1]),
        ([1, 1, 1, 1.9], {"threshold_multiplier": 1.5}, [3]),
        ([1, 1, 1, 1], {}, []),
        ([], {}, []),
        ({}, {"method": "median"}, []),
        ([[1, 1], [1, 1], [1, 1], [9, 9]], {}, [3]),
        ([[9, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]], {"window": 2}, []),
        ([[1, 1, 9], [1, 1, 1], [1, 1, 1], [1, 1, 1]], {"window": 1, "method": "median"}, [0]),
        ([0, 0, 0], {}, []),
    ],
)
def test_identify_stragglers(
    times: object, options: dict[str, object], expected: list[int]
) -> None:
    assert stepscope.identify_stragglers(times, **options) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("times", "options"),
    [
        ([1, float("nan")], {}),
        ([1, float("inf")], {}),
        ([1, -1], {}),
        ([[1, 1], []], {}),
        (["fast", "slow"], {}),
        ([None, 1], {}),
        ([[1], ["x"]], {}),
        ([1, 2], {"method": "mode"}),
        ([1, 2], {"threshold_multiplier": 0}),
        ([1, 2], {"threshold_multiplier": float("nan")}),
        ([[1], [2]], {"window": 0}),
    ],
)
def test_identify_stragglers_refuses(times: object, options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        stepscope.identify_stragglers(times, **options)  # type: ignore[arg-type]


def test_identify_stragglers_says_that_the_mean_cannot_find_one_of_two() -> None:
    doc = stepscope.identify_stragglers.__doc__ or ""
    assert "2 ranks" in doc
    assert "median" in doc
    assert threading.active_count() >= 1


def test_load_names_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        stepscope.load("nowhere")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.db").write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(ValueError, match=r"run\.db"):
        stepscope.load("bad")
    assert (tmp_path / "bad" / "run.db").read_bytes().startswith(b"not a database")


def test_stubs_and_typing_marker_are_installed() -> None:
    package = Path(stepscope.__file__).parent
    assert (package / "py.typed").exists()
    assert json.dumps(stepscope.__version__)
