"""What a run leaves: summary.json with its schema, summary.txt, run.db, stepscope.load."""

import json
import sqlite3
from pathlib import Path

import jsonschema
import pytest
from observing import PHASES, ROOT, Ran, check_summary, execute, observe, script

STEPS = 200  # long enough for two readings of the CPU
LOOP = f"phases.py --input 6 --forward 6 --validation 10 --steps {STEPS}".split()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("files")
    return observe(
        folder,
        script(*LOOP),
        flags=["--set", "input_warning=0.15", "--json"],
        env={"STEPSCOPE_INPUT_CRITICAL": "0.9", "STEPSCOPE_INPUT_WARNING": "0.5"},
    )


@pytest.mark.fast
def test_summary_obeys_its_schema(ran: Ran) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "summary.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(ran.finished().summary, schema)
    assert isinstance(ran.summary["schema"], int)


def test_json_on_stdout_is_the_summary(ran: Ran) -> None:
    assert json.loads(ran.finished().stdout) == ran.summary


def test_settings_are_effective_and_told(ran: Ran) -> None:
    """--set beats the environment, which beats the defaults."""
    settings = ran.finished().summary["settings"]
    assert settings["input_warning"] == 0.15
    assert settings["input_critical"] == 0.9
    assert ran.summary["verdict"]["code"] == "INPUT_BOUND"
    assert ran.summary["verdict"]["severity"] == "warning"


def test_what_the_issue_lists_is_there(ran: Ran) -> None:
    summary = ran.finished().summary
    assert {
        "name",
        "id",
        "command",
        "exit_code",
        "started",
        "duration_s",
        "ranks",
        "nodes",
        "versions",
    } <= set(summary["run"])
    assert summary["run"]["command"] == script(*LOOP)
    assert {"count", "warmup", "failed", "mean_ms", "median_ms", "p95_ms"} <= set(summary["steps"])
    assert set(PHASES) <= set(summary["phases"])
    assert all(
        {"measured", "mean_ms", "share"} <= set(phase) for phase in summary["phases"].values()
    )
    assert {"rank", "node", "steps", "phases"} <= set(summary["ranks"][0])
    assert {"cpu", "memory", "gpus"} <= set(summary["resources"])
    assert {"records_written", "records_dropped", "cost_us_per_step"} <= set(summary["stepscope"])
    for name in ("cpu", "memory"):
        reading = summary["resources"][name]
        assert reading["measured"]
        assert 0 < reading["average"] <= reading["peak"]
    fields = {
        "code",
        "severity",
        "confidence",
        "scope",
        "rank",
        "node",
        "device",
        "worker",
        "phase",
        "pattern",
        "cause",
        "first_step",
        "last_step",
        "share",
        "cost_ms_per_step",
        "predicted_saving",
        "evidence",
        "not_measured",
        "advice",
        "ended",
    }
    for finding in summary["findings"]:
        assert fields <= set(finding)
        assert finding["phase"] in (None, *summary["phases"])
    assert summary["verdict"] in summary["findings"]


def test_our_own_cost_is_small_beside_the_step(ran: Ran) -> None:
    cost = ran.finished().summary["stepscope"]["cost_us_per_step"]
    assert 0 < cost < 0.05 * ran.summary["steps"]["mean_ms"] * 1e3
    assert ran.summary["stepscope"]["records_dropped"] == 0


def test_phases_and_steps(ran: Ran) -> None:
    assert ran.finished().measured is not None
    check_summary(ran.summary, ran.measured["steps"])


def test_load_gives_rows(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    import stepscope

    run = stepscope.load(ran.finished().run)
    assert len(run.runs) == len(run.ranks) == 1
    assert run.ranks[0]["steps"] == len(run.steps) == STEPS
    assert [row["step"] for row in run.steps] == list(range(STEPS))
    assert sum(row["warmup"] for row in run.steps) == ran.summary["steps"]["warmup"]
    assert [finding["code"] for finding in run.findings] == [
        f["code"] for f in ran.summary["findings"]
    ]
    assert run.summary == ran.summary
    monkeypatch.chdir(ran.run.parent)
    assert stepscope.load("run").steps == run.steps


def test_the_database_is_one_plain_file(ran: Ran) -> None:
    assert {file.name for file in ran.finished().run.iterdir()} == {
        "run.db",
        "summary.json",
        "summary.txt",
    }
    with sqlite3.connect(f"file:{ran.run / 'run.db'}?mode=ro", uri=True) as database:
        assert database.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_show_says_it_again(ran: Ran) -> None:
    from observing import STEPSCOPE

    ran.finished()
    card = execute(ran.folder, [STEPSCOPE, "show", str(ran.run)]).finished()
    assert card.stdout.strip() == (ran.run / "summary.txt").read_text().strip()
    again = execute(ran.folder, [STEPSCOPE, "show", str(ran.run), "--json"]).finished()
    assert json.loads(again.stdout) == ran.summary


def test_nothing_is_left_in_shared_memory(ran: Ran) -> None:
    import os

    ran.finished()
    folder = Path(f"/dev/shm/stepscope-{os.getuid()}")
    left = (
        [path for path in folder.rglob("run.txt") if f"folder={ran.run}" in path.read_text()]
        if folder.exists()
        else []
    )
    assert left == []
