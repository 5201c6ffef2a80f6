"""The project's own checks catch what they are for."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.fast


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("src", "include", "python", "tools", "docs", "contrib", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CMakeLists.txt", tmp_path)
    return tmp_path


def check(tree: Path, tool: str) -> list[str]:
    command = [sys.executable, str(tree / "tools" / tool)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 1) == bool(done.stdout)
    return done.stdout.splitlines()


def test_layers_hold(tree: Path):
    assert check(tree, "check_layers.py") == []


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("src/model/a.h", '#include "engine/engine.h"\n', "model includes engine/engine.h"),
        ("src/base/a.cpp", '  #  include "../cli/say.h"\n', "write the path from src/"),
        ("src/agent/a.cpp", "#include <Python.h>\n", "only python/bindings may"),
        ("src/extra/a.cpp", "", "'extra' is not a stage"),
        ("python/bindings/a.cpp", '#include "store/store.h"\n', "may not include store/store.h"),
        ("include/stepscope/a.h", '#include "agent/fold.h"\n', "may not include agent/fold.h"),
        ("python/stepscope/_stragglers.py", "import torch\n", "would import torch"),
        ("python/stepscope/hooks/a.py", "import signal\nsignal.signal(1, f)\n", "in a guest"),
        ("python/stepscope/a.py", "import os\nos.environ['A'] = '1'\n", "writes os.environ"),
    ],
)
def test_layers_catch(tree: Path, path: str, text: str, fault: str):
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text(text)
    faults = check(tree, "check_layers.py")
    assert len(faults) == 1
    assert fault in faults[0]


def test_docs_hold(tree: Path):
    assert check(tree, "check_docs.py") == []


def test_docs_catch_another_default_and_a_dead_link(tree: Path):
    page = tree / "docs/reference/settings.md"
    page.write_text(page.read_text().replace("| 0.8 |", "| 0.7 |") + "[x](nowhere.md)\n")
    faults = check(tree, "check_docs.py")
    assert len(faults) == 2
    assert "compute_bound is 0.7, in the code 0.8" in faults[0]
    assert "nowhere.md" in faults[1]


@pytest.mark.parametrize(
    ("text", "exit_code", "counts"),
    [
        ("<testsuite><testcase/><testcase><skipped/></testcase></testsuite>", 0, "1 0 1"),
        ("<testsuite><testcase><failure/></testcase><testcase/></testsuite>", 1, "1 1 0"),
        ('<testsuite><testcase status="fail"/></testsuite>', 8, "0 1 0"),
        ("<testsuite></testsuite>", 5, "0 1 0"),  # no test was found
        ("not XML", 0, "0 1 0"),
    ],
)
def test_junit_counts(tmp_path: Path, text: str, exit_code: int, counts: str):
    (tmp_path / "a.xml").write_text(text)
    command = [sys.executable, str(ROOT / "tools/junit_counts.py"), str(tmp_path / "a.xml")]
    done = subprocess.run([*command, str(exit_code)], capture_output=True, text=True)
    assert done.stdout == f"{counts}\n"
