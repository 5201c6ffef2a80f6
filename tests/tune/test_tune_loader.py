"""`stepscope tune loader` on loops whose input has a known cause. Gains asked for are far below
what the script's own sleeps make of them, because other work may be on the machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from cli.commands import is_gone, start, stepscope, wait_for
from observing import STEPSCOPE, Ran, execute, script, together, torchrun

TUNE = [STEPSCOPE, "tune", "loader"]


def tune(folder: Path, command: list[str], *flags: str, **env: str) -> Ran:
    (folder / "record").mkdir(parents=True)
    words = [*TUNE, "--json", "--steps", "16", *flags, "--", *command]
    return execute(folder, words, env={"RECORD": str(folder / "record"), **env})


def told(ran: Ran) -> dict[str, Any]:
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


def recorded(folder: Path) -> list[tuple[dict[str, Any], list[str]]]:
    """Of each process: its loaders' settings, and the sample numbers of its batches."""
    files = [path.read_text().splitlines() for path in sorted((folder / "record").iterdir())]
    return [(json.loads(lines[0]), lines[1:]) for lines in files]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    folder = tmp_path_factory.mktemp("tuned")
    best = str(folder / "best.json")
    calls = {
        "sleep": (script("tunable.py", "sleep"), ["--max-trials", "3", "--output", best], {}),
        "tensors": (script("tunable.py", "tensors"), ["--max-trials", "2"], {}),
        "fine": (script("tunable.py", "fine"), [], {}),
        "stream": (script("tunable.py", "stream"), ["--max-trials", "2"], {}),
        "epoch": (script("tunable.py", "epoch"), ["--max-trials", "3"], {}),
        "crash": (
            script("tunable.py", "sleep"),
            ["--max-trials", "2"],
            {"CRASH_WITH_WORKERS": "1"},
        ),
        "ranks": (torchrun(2, "tunable.py", "sleep"), ["--max-trials", "2"], {}),
    }
    return together(
        {
            name: lambda name=name, call=call: tune(folder / name, call[0], *call[1], **call[2])
            for name, call in calls.items()
        }
    )


def test_a_loop_that_sleeps_for_its_data(tuned: dict[str, Ran]) -> None:
    ran = tuned["sleep"].finished()
    found = told(ran)
    assert found["schema"] == 1
    assert found["user"]["settings"]["num_workers"] == 0
    assert found["best"]["settings"]["num_workers"] > 0
    assert found["best"]["steps_per_s"] > 1.1 * found["user"]["steps_per_s"]
    assert found["trials"][0]["own"]
    assert len(found["trials"]) <= 3 < found["grid"]
    cores = next(limit for limit in found["limits"] if limit["name"] == "cores")
    assert cores["workers"] >= found["best"]["settings"]["num_workers"]
    assert "usable cores" in cores["arithmetic"]
    assert json.loads((ran.folder.parent / "best.json").read_text()) == found


def test_samples_and_validation_stay_as_they_are(tuned: dict[str, Ran]) -> None:
    processes = recorded(tuned["sleep"].folder)
    assert len(processes) == len(told(tuned["sleep"])["trials"])
    workers = {settings["workers"] for settings, _ in processes}
    assert 0 in workers and len(workers) > 1
    for settings, batches in processes:
        assert settings["validation"] == 0
        assert settings["tune"] == "1"
        assert len(batches) >= 8
        common = min(len(batches), len(processes[0][1]))
        assert batches[:common] == processes[0][1][:common]


def test_the_best_settings_put_into_the_whole_run(tuned: dict[str, Ran]) -> None:
    best = str(tuned["sleep"].folder.parent / "best.json")
    folder = tuned["sleep"].folder / "applied"
    words = [*TUNE, "--apply-env", best, "--", *script("tunable.py", "sleep", 30)]
    ran = execute(folder, words).finished()
    settings = json.loads(ran.stdout)
    assert settings["workers"] == told(tuned["sleep"])["best"]["settings"]["num_workers"]
    assert settings["validation"] == 0
    assert settings["tune"] is None
    assert "while tuning" in ran.stderr
    assert "for another command" in ran.stderr  # 30 is new
    summaries = list((folder / "stepscope-runs").glob("*/summary.json"))
    assert len(summaries) == 1
    assert json.loads(summaries[0].read_text())["steps"]["count"] == 30


def test_plain_tensors_are_indexed_a_batch_at_a_time(tuned: dict[str, Ran]) -> None:
    ran = tuned["tensors"].finished()
    own, batched = told(ran)["trials"]
    assert batched["settings"] == own["settings"] | {"batch_wise": True}
    assert batched["steps_per_s"] > 1.1 * own["steps_per_s"]
    (_, plain), (_, whole) = recorded(ran.folder)
    common = min(len(plain), len(whole))
    assert plain[:common] == whole[:common]


def test_nothing_is_tried_where_input_is_fine(tuned: dict[str, Ran]) -> None:
    found = told(tuned["fine"].finished())
    assert found["stopped_because"] == "input_fine"
    assert len(found["trials"]) == 1
    assert found["best"] == found["user"]


def test_a_stream_that_workers_would_repeat_keeps_its_number(tuned: dict[str, Ran]) -> None:
    found = told(tuned["stream"].finished())
    assert {trial["settings"]["num_workers"] for trial in found["trials"]} == {0}
    assert any("get_worker_info" in note for note in found["notes"])


def test_d02_a_dataset_with_its_own_epoch_keeps_new_workers(tuned: dict[str, Ran]) -> None:
    found = told(tuned["epoch"].finished())
    assert len(found["trials"]) > 1
    assert not any(trial["settings"]["persistent_workers"] for trial in found["trials"])
    assert any("keeps its epoch" in note for note in found["notes"])


def test_settings_that_crash_lose(tuned: dict[str, Ran]) -> None:
    found = told(tuned["crash"].finished())
    assert found["best"]["settings"] == found["user"]["settings"]
    failed = [trial["failed"] for trial in found["trials"] if trial["failed"]]
    assert failed and all("exit code 1" in why for why in failed)


def test_all_ranks_get_the_same(tuned: dict[str, Ran]) -> None:
    ran = tuned["ranks"].finished()
    found = told(ran)
    assert "2 ranks" in found["limits"][0]["arithmetic"]
    by_workers: dict[int, list[int]] = {}
    for settings, _ in recorded(ran.folder):
        by_workers.setdefault(settings["workers"], []).append(settings["rank"])
    assert len(by_workers) == len(found["trials"]) == 2
    assert max(by_workers) > 0
    assert all(sorted(ranks) == [0, 1] for ranks in by_workers.values())


def test_interrupted_gives_the_best_so_far(tmp_path: Path) -> None:
    process = start(
        tmp_path,
        *("tune", "loader", "--json", "--steps", "8", "--output", "best.json", "--"),
        *script("tunable.py", "sleep"),
        env={"RECORD": str(tmp_path)},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "trial 1:" in line:
            break
    read_until_second_trial(tmp_path)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    found = json.loads(out)
    assert found["stopped_because"] == "interrupted"
    assert found["best"]["steps_per_s"] > 0
    assert json.loads((tmp_path / "best.json").read_text()) == found
    pids = [int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()]
    assert len(pids) == 2 and all(is_gone(pid) for pid in pids)
    assert not list(Path(f"/dev/shm/stepscope-{os.getuid()}").glob(f"tune-{process.pid}-*"))


def read_until_second_trial(folder: Path) -> None:
    wait_for(
        lambda: len([path for path in folder.iterdir() if path.name.isdigit()]) == 2,
        "a second trial",
    )


@pytest.mark.fast
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no command"),
        (["--", "/bin/sh", "-c", "echo trouble; exit 3"], "trouble"),
        (["--", "no-such-command-at-all"], "not in PATH"),
        (["--apply-env", "missing.json", "--", "true"], "missing.json"),
        (["--apply-env", "other.json", "--", "true"], "other.json"),
        (["--steps", "1", "--", "true"], "steps"),
    ],
)
def test_wrong_use(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "other.json").write_text('{"schema": 1}')
    done = stepscope(tmp_path, "tune", "loader", *words)
    assert done.code in (2, 127)
    assert message in done.stderr
    assert re.search(r"^hint: ", done.stderr, re.MULTILINE) or "--help" in done.stderr
