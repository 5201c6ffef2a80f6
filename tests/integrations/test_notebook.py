"""start() and stop() in a real kernel: live output in the cell that trains, the card at the end,
and cells that are interrupted and run again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
import stepscope
from nbclient import NotebookClient
from observing import environment

from integrations.pages import example

INTERRUPTED = """
import os, signal, threading, time
threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
for x, y in torch.utils.data.DataLoader(data, batch_size=32):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    time.sleep(0.02)
    optimizer.step()
    optimizer.zero_grad()
    done = globals().get("done", 0) + 1
"""
LONG = """
for x, y in torch.utils.data.DataLoader(data, batch_size=128):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    time.sleep(0.05)
    optimizer.step()
    optimizer.zero_grad()
"""
# Colab's shell is a class of its own, made from Jupyter's.
COLAB = """
shell = get_ipython()
shell.__class__ = type(type(shell))("Shell", (type(shell),), {})
"""
THREADS = "import threading; print(sorted(t.name for t in threading.enumerate()))"


def cells() -> tuple[list[str], dict[str, int]]:
    start, setup, train, stop = (
        part.strip()
        for part in re.split(r"^# (?:notebook|cell)$", example("notebooks", "notebook"), flags=re.M)
        if part.strip()
    )
    order = {
        "threads_before": THREADS,
        "start": start,
        "setup": setup,
        "train": train,
        "interrupted": INTERRUPTED,
        "start_again": start,
        "long": LONG,
        "threads_after": THREADS,
        "done": "print(done)",
        "stop": stop,
        "stop_twice": stop,
        "colab": COLAB,
        "second_start": start,
        "second_train": train,
        "second_stop": stop,
    }
    return list(order.values()), {name: i for i, name in enumerate(order)}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("notebook")
    sources, place = cells()
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    client = NotebookClient(
        book,
        timeout=120,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment(folder))
    return {name: book.cells[at] for name, at in place.items()}, folder


def cards(cell: Any) -> list[str]:
    return [
        output["data"]["text/plain"]
        for output in cell.outputs
        if output.output_type == "display_data" and "text/html" in output["data"]
    ]


def errors(cell: Any) -> list[str]:
    return [output.ename for output in cell.outputs if output.output_type == "error"]


def test_the_cell_that_trains_shows_the_run_live(notebook: Any) -> None:
    book, _ = notebook
    assert errors(book["long"]) == []
    (card,) = cards(book["long"])  # one output, drawn anew
    assert "throughput" in card
    assert cards(book["setup"]) == []


def test_an_interrupt_is_the_users_and_draws_a_last_time(notebook: Any) -> None:
    book, _ = notebook
    assert errors(book["interrupted"]) == ["KeyboardInterrupt"]
    (card,) = cards(book["interrupted"])
    assert "throughput" in card


def test_stop_shows_the_card_of_all_of_it(notebook: Any) -> None:
    book, folder = notebook
    runs = sorted(path for path in (folder / "stepscope-runs").iterdir())
    assert [path.name.startswith("notebook-") for path in runs] == [True, True]
    (card,) = cards(book["stop"])
    first = stepscope.load(runs[0])
    assert card.strip() == (runs[0] / "summary.txt").read_text().strip()
    assert first.summary is not None
    steps = first.summary["steps"]
    # `train`, what was done until the interrupt, and `long`; the step that it cut off is failed, or
    # its neighbour's
    done = int(book["done"].outputs[0]["text"])
    assert done > 0
    assert steps["count"] - (600 + done + 50) in (0, 1)
    assert steps["failed"] <= 1
    assert cards(book["stop_twice"]) == []


def test_a_second_run_is_another_under_colab_too(notebook: Any) -> None:
    book, folder = notebook
    assert errors(book["colab"]) == []
    runs = sorted(path for path in (folder / "stepscope-runs").iterdir())
    summary = stepscope.load(runs[1]).summary
    assert summary is not None
    assert summary["steps"]["count"] == 600
    (card,) = cards(book["second_stop"])
    assert card.strip() == (runs[1] / "summary.txt").read_text().strip()


def test_live_output_has_a_row_and_no_thread(notebook: Any) -> None:
    book, folder = notebook
    runs = sorted(path for path in (folder / "stepscope-runs").iterdir())
    drawn = [step for step in stepscope.load(runs[0]).steps if step["user_phases_ns"]]
    assert {name for step in drawn for name in step["user_phases_ns"]} == {"live view"}
    before, after = (
        {name for name in eval(book[cell].outputs[0]["text"]) if not name.startswith("Thread-")}
        for cell in ("threads_before", "threads_after")
    )
    assert before == after
