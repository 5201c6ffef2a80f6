"""stepscope export: what is in the files is what is in run.db, and no file is ever half there."""

from __future__ import annotations

import csv
import html.parser
import io
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli.commands import PATIENCE_S, Done, read_until, start, stepscope, wait_for
from observing import PHASES, ROOT, STEPSCOPE, environment

pytestmark = pytest.mark.fast

HOSTILE = "</script><!--<script>&\"'`\u2028\n\x1b[31m,;=cmd|'/C calc'!A0"
FORMATS = {
    "perfetto": ".perfetto.json",
    "csv": ".csv",
    "otlp": ".otlp.jsonl",
    "html": ".html",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, cpp_loop: str) -> Path:
    """late: a straggler on two nodes. long: older steps are rollups. hostile: every name is.
    real: a run with readings of memory. empty: a run without a step."""
    folder = tmp_path_factory.mktemp("export")
    fault = ["--fault", "rank=2 phase=input add=40ms from=100"]
    for name, words in {
        "late": ["--ranks", "4", "--nodes", "2", "--steps", "200", *fault],
        "long": ["--ranks", "1", "--steps", "2300"],
        "hostile": ["--ranks", "2", "--steps", "60"],
    }.items():
        run = f"stepscope-runs/{name}"
        done = stepscope(folder, "simulate", *words, "--run-dir", run, "--quiet")
        assert done.code == 0, done.stderr
    hostile = folder / "stepscope-runs" / "hostile"
    with closing(sqlite3.connect(hostile / "run.db")) as database, database:
        database.execute("UPDATE runs SET name = ?", (HOSTILE,))
        database.execute("UPDATE ranks SET node = ?", (HOSTILE,))
        database.execute(
            "INSERT INTO step_user_phases SELECT id, 0, ?, 1000000 FROM steps", (HOSTILE,)
        )
        database.execute("UPDATE steps SET other_ns = other_ns - 1000000")
    (hostile / "summary.json").unlink()
    for words in (["real", cpp_loop, "150", "forward=8"], ["empty", "sh", "-c", "true"]):
        done = stepscope(folder, "run", "--quiet", "--name", *words)
        assert done.code == 0, done.stderr
    return folder


def rows(runs: Path, run: str, query: str) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(runs / "stepscope-runs" / run / "run.db")) as database:
        database.row_factory = sqlite3.Row
        return database.execute(query).fetchall()


def export(runs: Path, run: str, to: str, **options: Any) -> str:
    done = stepscope(runs, "export", run, "--to", to, "--output", "-", **options)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout


# --- what is in them ------------------------------------------------------------------------------


class Trace:
    def __init__(self, text: str) -> None:
        self.events: list[dict[str, Any]] = json.loads(text)["traceEvents"]

    def of(self, phase: str, category: str | None = None) -> list[dict[str, Any]]:
        return [e for e in self.events if e["ph"] == phase and e.get("cat") == category]

    def named(self, what: str) -> dict[int, str]:
        return {e["tid"]: e["args"]["name"] for e in self.of("M") if e["name"] == what}


def test_perfetto_has_a_track_a_rank_and_its_phases_in_each_step(runs: Path) -> None:
    trace = Trace(export(runs, "late", "perfetto"))
    steps = rows(runs, "late", "SELECT * FROM steps ORDER BY rank, step")
    assert list(trace.named("process_name").values()) == [
        "rank 0 (node0)", "rank 1 (node0)", "rank 2 (node1)", "rank 3 (node1)",
    ]  # fmt: skip
    assert Counter(trace.named("thread_name").values())["steps"] == 4
    slices = trace.of("X", "step")
    assert [(e["pid"] - 1, e["args"]["step"]) for e in slices] == [
        (row["rank"], row["step"]) for row in steps
    ]
    by_track: dict[int, list[dict[str, Any]]] = {}
    for phase in trace.of("X", "phase"):
        by_track.setdefault(phase["tid"], []).append(phase)
    for row, step in zip(steps, slices, strict=True):
        # Clocks that drift (the simulator's do) are stretched to rank 0's.
        drift = 0 if row["rank"] == 0 else 1e-3
        assert step["dur"] == pytest.approx(row["step_time_ns"] / 1e3, abs=0.01, rel=drift)
        here = by_track[step["tid"]]
        inside = [here.pop(0)]
        while here and here[0]["ts"] < step["ts"] + step["dur"] - 0.01:
            inside.append(here.pop(0))
        assert inside[0]["ts"] == step["ts"]
        assert {e["name"]: e["dur"] for e in inside} == pytest.approx(
            {name: row[f"{name}_ns"] / 1e3 for name in PHASES if row[f"{name}_ns"]},
            abs=0.01,
            rel=drift,
        )
        for before, after in itertools.pairwise(inside):
            assert after["ts"] == pytest.approx(before["ts"] + before["dur"], abs=0.01)
        end = inside[-1]["ts"] + inside[-1]["dur"]
        assert end == pytest.approx(step["ts"] + step["dur"], abs=0.01)
    assert not any(by_track.values())


def test_perfetto_lays_ranks_over_each_other_by_what_they_left_together(runs: Path) -> None:
    """Clocks of two nodes have nothing in common; in the trace a sync point ends at one time."""
    waits = Trace(export(runs, "late", "perfetto")).of("X", "wait")
    assert len(waits) == 4 * 200
    ends: dict[int, list[float]] = {}
    for at, wait in enumerate(waits):
        ends.setdefault(at % 200, []).append(wait["ts"] + wait["dur"])
    assert max(max(times) - min(times) for times in ends.values()) < 2000  # µs, of steps of 140,000
    for before, after in itertools.pairwise(waits):
        if before["tid"] == after["tid"]:  # on a track nothing overlaps
            assert after["ts"] >= before["ts"] + before["dur"] - 0.01


def test_perfetto_has_findings_counters_and_older_steps(runs: Path) -> None:
    summary = json.loads((runs / "stepscope-runs/late/summary.json").read_text())
    trace = Trace(export(runs, "late", "perfetto"))
    findings = trace.of("i", "finding")
    assert [e["name"] for e in findings] == [f["code"] for f in summary["findings"]]
    (late,) = [e for e in findings if e["name"] == "STRAGGLER"]
    (step,) = [e for e in trace.of("X", "step") if e["pid"] == 3 and e["args"]["step"] == 100]
    assert (late["pid"], late["ts"], late["s"]) == (3, step["ts"], "p")

    counters = Trace(export(runs, "real", "perfetto")).of("C")
    readings = rows(runs, "real", "SELECT * FROM memory ORDER BY id")
    assert readings
    for name, key, column in [
        ("memory (bytes)", "process", "rss_bytes"),
        ("cpu (cores)", "used", "cpu_cores"),
    ]:
        shown = [e["args"][key] for e in counters if e["name"] == name]
        kept = [row[column] for row in readings if row[column] is not None]
        assert shown == pytest.approx(kept, abs=1e-4)

    older = Trace(export(runs, "long", "perfetto")).of("X", "older")
    assert older[0]["name"] == "steps 10-19"  # ten of warm-up, then rollups
    assert sum(e["args"]["steps"] for e in older) == 2300 - 2000 - 10


def test_csv_has_a_row_a_step_and_rank(runs: Path) -> None:
    table = list(csv.DictReader(io.StringIO(export(runs, "late", "csv"))))
    steps = rows(runs, "late", "SELECT * FROM steps ORDER BY rank, step")
    assert len(table) == len(steps) == 800
    measured = json.loads((runs / "stepscope-runs/late/summary.json").read_text())["phases"]
    for row, step in zip(table, steps, strict=True):
        for column in ("rank", "step", "fetches", "backwards", "optimizer_steps", "skipped_steps"):
            assert row[column] == str(step[column])
        for flag in ("warmup", "failed", "profiled", "compiled", "paused", "incomplete"):
            assert row[flag] == ("true" if step[flag] else "false")
        assert float(row["total_ms"]) == pytest.approx(step["step_time_ns"] / 1e6, abs=1e-6)
        for name in PHASES:
            want = f"{step[f'{name}_ns'] / 1e6:.6f}" if measured[name]["measured"] else ""
            assert row[f"{name}_ms"] == want
    assert {row["node"] for row in table if row["rank"] in "01"} == {"node0"}
    documented = re.findall(r"^\| `(.*?)` \|", (ROOT / "docs/export.md").read_text(), re.MULTILINE)
    names = [name for cell in documented for name in re.findall(r"\w+", cell)]
    assert [name for name in table[0] if name not in names] == []


def test_names_of_strangers_are_harmless(runs: Path) -> None:
    table = list(csv.DictReader(io.StringIO(export(runs, "hostile", "csv"), newline="")))
    assert len(table) == 120
    assert {row["node"] for row in table} == {HOSTILE}
    assert {row[f"user.{HOSTILE}_ms"] for row in table} == {"1.000000"}
    trace = Trace(export(runs, "hostile", "perfetto"))
    assert {e["name"] for e in trace.of("X", "user phase")} == {HOSTILE}
    lines = [json.loads(line) for line in export(runs, "hostile", "otlp").split("\n")[:-1]]
    assert len(lines) == 3
    for line in lines:
        assert json.dumps(HOSTILE) in json.dumps(line)
    done = stepscope(runs, "export", "stepscope-runs/hostile", "--to", "csv")
    (written,) = [name for name in os.listdir(runs) if "cmd" in name]
    assert re.fullmatch(r"[\w.-]+\.csv", written, re.ASCII)
    assert "\x1b" not in done.stderr


def test_otlp_is_what_the_protocol_says(runs: Path) -> None:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    summary = json.loads((runs / "stepscope-runs/late/summary.json").read_text())
    first, *others = [
        json_format.Parse(line, ExportMetricsServiceRequest())  # refuses what it does not know
        for line in export(runs, "late", "otlp").split("\n")[:-1]
    ]
    (scope,) = first.resource_metrics[0].scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    assert "stepscope_up" not in metrics  # of a server
    total = metrics["stepscope_steps_total"].sum
    assert (total.is_monotonic, total.aggregation_temporality) == (True, 2)
    assert total.data_points[0].as_double == summary["steps"]["count"]
    mean = metrics["stepscope_step_mean_seconds"]
    assert mean.unit == "s"
    assert mean.gauge.data_points[0].as_double == pytest.approx(summary["steps"]["mean_ms"] / 1e3)
    end_ns = mean.gauge.data_points[0].time_unix_nano
    lengths: list[tuple[int, float]] = []
    phases_s: Counter[str] = Counter()
    newest_ns = 0
    for request in others:
        step, phase = request.resource_metrics[0].scope_metrics[0].metrics
        for point in step.gauge.data_points:
            labels = {a.key: a.value.string_value for a in point.attributes}
            lengths.append((int(labels["rank"]), point.as_double))
            newest_ns = max(newest_ns, point.time_unix_nano)
        for point in phase.gauge.data_points:
            labels = {a.key: a.value.string_value for a in point.attributes}
            phases_s[labels["phase"]] += point.as_double
    steps = rows(runs, "late", "SELECT * FROM steps ORDER BY rank, step")
    assert lengths == [(row["rank"], pytest.approx(row["step_time_ns"] / 1e9)) for row in steps]
    assert newest_ns == end_ns
    assert phases_s == {
        name: pytest.approx(total_ns / 1e9)
        for name in PHASES
        if (total_ns := sum(row[f"{name}_ns"] for row in steps))
    }


class Elements(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: dict[str, str] = {}
        self.within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        self.within = dict(attrs).get("id") or tag

    def handle_data(self, data: str) -> None:
        self.texts[self.within] = self.texts.get(self.within, "") + data


def test_html_is_one_file_that_asks_for_nothing(runs: Path) -> None:
    text = export(runs, "hostile", "html")
    page = Elements(text)
    assert page.tags["script"] == 2
    assert page.tags["img"] == 0
    assert not [value for name, value in page.attributes if name == "src"]
    links = [value for name, value in page.attributes if name == "href"]
    assert [link and link[:5] for link in links] == ["data:"]
    (policy,) = [v for n, v in page.attributes if n == "content" and v and "default-src" in v]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    nonces = {value for name, value in page.attributes if name == "nonce"}
    assert len(nonces) == 1
    assert not nonces & {v for n, v in Elements(export(runs, "late", "html")).attributes}
    data = json.loads(page.texts["stepscope-run"])
    assert data["summary"]["run"]["name"] == HOSTILE
    assert {row["node"] for row in data["ranks"][0]["rows"]} == {HOSTILE}
    assert data["series"][0]["phases"][-1]["name"] == HOSTILE
    assert {map_["value"] for map_ in data["heatmaps"]} >= {"late", "total", HOSTILE}


def test_a_run_without_steps(runs: Path) -> None:
    assert export(runs, "empty", "csv").count("\n") == 1
    assert json.loads(export(runs, "empty", "perfetto"))["traceEvents"] == []
    assert export(runs, "empty", "otlp").count("\n") == 1
    assert "stepscope-run" in Elements(export(runs, "empty", "html")).texts


# --- parquet --------------------------------------------------------------------------------------

# As much of pyarrow as is used, with its names and its strictness. The file is JSON.
DOUBLE = {
    "__init__.py": """
def type_for_alias(alias):
    return {"int32": int, "int64": int, "double": float, "string": str,
            "bool": {"true": True, "false": False}.__getitem__}[alias]
def schema(fields):
    return dict(fields)
""",
    "csv.py": """
import csv, io
class ReadOptions:
    def __init__(self, *, column_names, block_size):
        self.names = column_names
class ParseOptions:
    def __init__(self, *, newlines_in_values):
        assert newlines_in_values is True
class ConvertOptions:
    def __init__(self, *, column_types):
        self.types = column_types
def open_csv(file, *, read_options, parse_options, convert_options):
    types = convert_options.types
    assert list(types) == read_options.names
    for row in csv.reader(io.TextIOWrapper(file, newline="")):
        named = zip(read_options.names, row, strict=True)
        yield {name: None if text == "" and types[name] is not str else types[name](text)
               for name, text in named}
""",
    "parquet.py": """
import json, os, time
class ParquetWriter:
    def __init__(self, where, schema, *, compression):
        self.where, self.rows = where, []
    def __enter__(self):
        return self
    def write_batch(self, batch):
        self.rows.append(batch)
        if len(self.rows) == 1 and os.environ.get("STALL"):
            open(os.environ["STALL"], "w").close()
            parent = os.getppid()
            while os.getppid() == parent:
                time.sleep(0.01)
    def __exit__(self, *_):
        self.where.write(json.dumps(self.rows).encode())
""",
}


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """The environment in which `import pyarrow` finds DOUBLE."""
    package = tmp_path_factory.mktemp("double") / "pyarrow"
    package.mkdir()
    for name, text in DOUBLE.items():
        (package / name).write_text(text)
    return {"PYTHONPATH": str(package.parent)}


def table_of(text: str) -> list[dict[str, Any]]:
    """The CSV's rows as values of Parquet."""

    def value(name: str, cell: str) -> Any:
        if name == "node":
            return cell
        if cell in ("", "true", "false"):
            return {"": None, "true": True, "false": False}[cell]
        return float(cell) if name.endswith("_ms") else int(cell)

    reader = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: value(name, cell) for name, cell in row.items()} for row in reader]


@pytest.mark.parametrize("run", ["late", "hostile", "empty"])
def test_parquet_has_the_rows_of_the_csv(
    runs: Path, run: str, double: dict[str, str | None], tmp_path: Path
) -> None:
    path = tmp_path / "out.parquet"
    words = ["export", f"stepscope-runs/{run}", "--to", "parquet", "--output", str(path)]
    done = stepscope(runs, *words, env=double)
    assert done.code == 0, done.stderr
    assert json.loads(path.read_text()) == table_of(export(runs, run, "csv"))


def test_parquet_by_pyarrow_itself(runs: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="skipped: needs pyarrow")
    for run in ("late", "hostile", "empty"):
        path = tmp_path / f"{run}.parquet"
        done = stepscope(runs, "export", run, "--to", "parquet", "--output", str(path))
        assert done.code == 0, done.stderr
        table = parquet.read_table(path)
        assert table.to_pylist() == table_of(export(runs, run, "csv"))
        assert table.schema.field("total_ms").type == "double"


def test_without_pyarrow_it_says_what_to_install(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pyarrow'] = None\n")
    done = stepscope(
        runs, "export", "late", "--to", "parquet", "--output", str(tmp_path / "out.parquet"),
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.code, done.stdout) == (2, "")
    found = re.fullmatch(
        r"stepscope: --to parquet needs the package pyarrow, which (\S+) does not have\n"
        r"hint: (\S+) -m pip install pyarrow; or: --to csv, the same rows\n",
        done.stderr,
    )
    assert found
    assert Path(found[1]).samefile(sys.executable)
    assert found[1] == found[2]
    assert sorted(os.listdir(tmp_path)) == ["sitecustomize.py"]


# --- where they go --------------------------------------------------------------------------------


@pytest.fixture
def place(runs: Path, tmp_path: Path) -> Path:
    """A folder of its own that `late` is found from."""
    (tmp_path / "stepscope-runs").symlink_to(runs / "stepscope-runs")
    return tmp_path


def test_the_file_is_named_after_the_run(place: Path) -> None:
    for to, ending in FORMATS.items():
        done = stepscope(place, "export", "real", "--to", to)
        assert (done.code, done.stdout) == (0, "")
        file = place / f"real{ending}"
        assert re.fullmatch(
            rf"stepscope: wrote real{re.escape(ending)} \([\d.]+ [KM]B\)\n", done.stderr
        )
        if to != "html":  # each has a nonce of its own
            assert file.read_text() == export(place, "real", to)
    again = stepscope(place, "export", "real", "--to", "csv")
    assert again == Done(
        2, "", "stepscope: real.csv is there already\nhint: to replace it, add --overwrite\n"
    )
    (place / "real.csv").write_text("old")
    assert stepscope(place, "export", "real", "--to", "csv", "--overwrite").code == 0
    assert (place / "real.csv").read_text() == export(place, "real", "csv")


def test_a_link_stays_and_its_file_is_replaced(place: Path) -> None:
    (place / "kept").mkdir()
    (place / "kept/file").write_text("old")
    (place / "link").symlink_to("kept/file")
    words = ["export", "late", "--to", "csv", "--output", "link", "--overwrite"]
    assert stepscope(place, *words).code == 0
    assert (place / "link").is_symlink()
    assert (place / "kept/file").read_text().startswith("rank,")


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["--output", "no/where.csv"], "could not write no/where.csv: No such file", "another"),
        (["--output", "."], ". is not a regular file", "give a file, or - for standard output"),
        (["--output", "/dev/full"], "/dev/full is not a regular file", "or - for standard output"),
        (["--to", "xml"], "there is no format xml", "--to perfetto|csv|parquet|otlp|html"),
        (["--to", ""], "there is no format ''", "--to perfetto|csv|parquet|otlp|html"),
    ],
)
def test_errors(place: Path, words: list[str], said: str, hint: str) -> None:
    to = [] if "--to" in words else ["--to", "csv"]
    done = stepscope(place, "export", "late", *to, *words)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"stepscope: {said}")
    assert hint in done.stderr.splitlines()[1]
    assert done.stderr.count("\n") == 2
    assert os.listdir(place) == ["stepscope-runs"]


def test_errors_of_the_run(place: Path) -> None:
    done = stepscope(place, "export", "nowhere", "--to", "csv")
    assert (done.code, done.stdout) == (2, "")
    assert "there is no run nowhere" in done.stderr
    assert "--to is required" in stepscope(place, "export", "late").stderr
    cut = place / "cut"
    shutil.copytree(place / "stepscope-runs" / "late", cut)
    for size in (cut.joinpath("run.db").stat().st_size // 2, 100, 0):
        os.truncate(cut / "run.db", size)
        for to in ("csv", "html"):
            done = stepscope(place, "export", "cut", "--to", to)
            assert (done.code, done.stdout) == (2, ""), size
            assert "run.db" in done.stderr
            assert "hint: " in done.stderr
    assert sorted(os.listdir(place)) == ["cut", "stepscope-runs"]


@pytest.mark.parametrize("to", ["perfetto", "html"])
def test_a_full_disk_is_an_error_and_leaves_nothing(place: Path, to: str) -> None:
    """A limit on a file's size stands for the disk."""
    (place / "there").write_text("old")
    words = [STEPSCOPE, "export", "late", "--to", to, "--output", "there", "--overwrite"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", *words],
        cwd=place, env=environment(place), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "stepscope: could not write there: File too large\nhint: give another place with --output\n"
    )
    assert (place / "there").read_text() == "old"
    assert sorted(os.listdir(place)) == ["stepscope-runs", "there"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*words[:-2], "-"], cwd=place, env=environment(place), stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "stepscope: could not write standard output: No space left on device\n"
        "hint: make room, or give another place with --output\n"
    )


def test_a_signal_ends_it_and_leaves_nothing(place: Path, double: dict[str, str | None]) -> None:
    stalled = place / "stalled"
    process = start(
        place, "export", "late", "--to", "parquet", env={**double, "STALL": str(stalled)}
    )
    wait_for(stalled.exists, "a row in pyarrow")
    assert [name for name in os.listdir(place) if ".part-" in name]
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == -signal.SIGTERM
    assert sorted(os.listdir(place)) == ["stalled", "stepscope-runs"]
    process.communicate()


def test_a_live_run_is_what_it_is_so_far(tmp_path: Path, cpp_loop: str) -> None:
    process = start(tmp_path, "run", "--quiet", "--name", "going", cpp_loop, "100000", "forward=4")
    read_until(process, "step 50")

    def rows_so_far() -> int:
        done = stepscope(tmp_path, "export", "going", "--to", "csv", "--output", "-")
        assert done.code == 0, done.stderr
        assert done.stderr == "stepscope: the run goes on: this is what it was so far\n"
        return done.stdout.count("\n") - 1

    wait_for(lambda: rows_so_far() > 20, "rows of a live run")
    process.send_signal(signal.SIGTERM)
    process.communicate()


def test_a_table_of_many_ranks_takes_no_more_memory(tmp_path: Path) -> None:
    """Four times the ranks, and the steps of one rank at a time."""
    peaks_kb = []
    for ranks in (24, 96):
        run = f"stepscope-runs/of-{ranks}"
        words = ["--ranks", str(ranks), "--steps", "1000", "--run-dir", run, "--quiet"]
        assert stepscope(tmp_path, "simulate", *words).code == 0
        code = (
            "import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, STEPSCOPE, "export", run, "--to", "csv", "--output", "-"],
            cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks_kb.append(int(done.stdout))
    steps_kb = 72 * 1000 * 264 / 1024  # what the steps of the other ranks would take at least
    assert peaks_kb[1] - peaks_kb[0] < steps_kb, peaks_kb
