"""The table of docs/integrations/README.md: each row has its page, tests that there are, and the
versions that they run.
"""

from __future__ import annotations

import re

import pytest
from observing import ROOT

from integrations.pages import PAGES

pytestmark = pytest.mark.fast

TESTED_BY = {  # row -> files of tests, and the word by which each has it
    "Hugging Face Trainer": "integrations/test_examples.py:huggingface "
    "answers/test_frameworks.py:trainer",
    "Lightning": "integrations/test_examples.py:lightning answers/test_frameworks.py:lightning",
    "Fabric": "integrations/test_examples.py:fabric",
    "Accelerate": "integrations/test_examples.py:accelerate",
    "DeepSpeed": "integrations/test_deepspeed.py:launcher",
    "timm-style loops": "integrations/test_examples.py:timm",
    "DDP, FSDP2, FSDP1, no_sync": "integrations/test_examples.py:distributed "
    "answers/test_ranks.py:under_fsdp answers/test_ranks.py:accumulation_without_sync "
    "answers/test_stragglers.py:fsdp1",
    "activation checkpointing": "integrations/test_examples.py:recompute",
    "torch.compile": "answers/test_compiled.py:compiled_first",
    "AMP with GradScaler": "answers/test_steps.py:grad_scaler_skips",
    "TRL": "integrations/test_examples.py:trl",
    "notebooks": "integrations/test_notebook.py:notebook",
    "Ray Train": "integrations/test_ray.py:ray",
    "TensorBoard": "integrations/test_trackers.py:tensorboard",
    "W&B": "integrations/test_trackers.py:wandb",
    "MLflow": "integrations/test_trackers.py:mlflow",
    "C++, libtorch": "integrations/test_cpp_package.py:libtorch",
}
ROW = re.compile(r"^\| \[(?P<name>[^]]+)\]\([\w.]+\) \| (?P<package>[\w-]+) (?P<version>[\d.]+) \|")


def rows() -> list[re.Match[str]]:
    table = (PAGES / "README.md").read_text(encoding="utf-8")
    return [row for line in table.splitlines() if (row := ROW.match(line))]


def test_each_row_has_tests() -> None:
    assert [row["name"] for row in rows()] == list(TESTED_BY)
    for tests in TESTED_BY.values():
        for test in tests.split():
            file, _, word = test.partition(":")
            assert word in (ROOT / "tests" / file).read_text(encoding="utf-8"), test


def test_versions_are_the_pinned_ones() -> None:
    files = ("requirements-dev.txt", "requirements-integrations.txt")
    lines = [line for name in files for line in (ROOT / name).read_text("utf-8").splitlines()]
    pins = dict(line.split("==") for line in lines if "==" in line)
    for row in rows():
        assert pins[row["package"]] == row["version"], row["package"]


def test_every_page_is_in_the_table() -> None:
    table = (PAGES / "README.md").read_text(encoding="utf-8")
    for page in PAGES.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in table, page.name
