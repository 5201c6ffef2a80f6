"""/metrics, remote-write and OTLP, against the monitoring systems themselves where installed."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import re
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cli.commands import Done, stepscope, wait_for
from observing import ROOT
from web.client import serve

CONTRIB = ROOT / "contrib"
TOKEN = "0123456789abcdef-for-monitoring"
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = frozenset[tuple[str, str]]


def needs(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program}")
    return path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def samples(text: str) -> dict[tuple[str, Labels], float]:
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = SAMPLE.match(line)
        assert found, line
        out[found[1], frozenset(LABEL.findall(found[2] or ""))] = float(found[3])
    return out


class Metered:
    """A simulated run with a straggler, and a server whose token is in a file."""

    def __init__(self, folder: Path, cpp_loop: str) -> None:
        self.folder = folder
        done = stepscope(
            folder, "simulate", "--ranks", "4", "--nodes", "2", "--steps", "200", "--quiet",
            "--fault", "rank=2 phase=input add=40ms", "--run-dir", 'stepscope-runs/a"\\b',
        )  # fmt: skip
        assert done.code == 0, done.stderr
        self.summary = json.loads(next(folder.glob("stepscope-runs/*/summary.json")).read_text())
        # A simulated run has no host: another one has.
        # Three seconds: the use of CPU takes two readings.
        loop = [cpp_loop, "200", "forward=15"]
        done = stepscope(folder, "run", "--quiet", "--name", "real", *loop)
        assert done.code == 0, done.stderr
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN)
        self.token_file.chmod(0o600)
        self.process, self.site = serve(folder, "--token-file", str(self.token_file))
        self.site.token = TOKEN

    def text(self, target: str = "/metrics") -> str:
        answer = self.site.get(target)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return answer.body.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def metered(tmp_path_factory: pytest.TempPathFactory, cpp_loop: str) -> Iterator[Metered]:
    server = Metered(tmp_path_factory.mktemp("metered"), cpp_loop)
    yield server
    server.close()


@pytest.mark.fast
def test_values_are_those_of_the_summary(metered: Metered) -> None:
    values = samples(metered.text())
    assert values["stepscope_up", frozenset()] == 1
    (build,) = [labels for name, labels in values if name == "stepscope_build_info"]
    assert dict(build)["version"] == metered.summary["run"]["versions"]["stepscope"]
    (run,) = [
        dict(labels)["run"]
        for name, labels in values
        if name == "stepscope_run_info" and dict(labels)["name"] == metered.summary["run"]["name"]
    ]

    def of_run(name: str, **labels: str) -> float:
        return values[f"stepscope_{name}", frozenset({"run": run, **labels}.items())]

    summary = metered.summary
    assert of_run("steps_total") == summary["steps"]["count"]
    assert of_run("step_mean_seconds") == pytest.approx(summary["steps"]["mean_ms"] / 1e3)
    for phase, row in summary["phases"].items():
        measured = ("stepscope_phase_ratio", frozenset({("run", run), ("phase", phase)})) in values
        assert measured == row["measured"], phase
        if measured:
            assert of_run("phase_ratio", phase=phase) == row["share"]
    assert of_run("findings", code="STRAGGLER", severity="critical") == 1
    for rank in summary["ranks"]:
        labels = {"rank": str(rank["rank"]), "node": rank["node"]}
        assert of_run("rank_own_mean_seconds", **labels) == pytest.approx(rank["own_ms"] / 1e3)


@pytest.mark.fast
def test_series_of_ranks_can_be_left_out(metered: Metered) -> None:
    assert "stepscope_rank_" in metered.text()
    assert "stepscope_rank_" not in metered.text("/metrics?per_rank=0")
    process, site = serve(metered.folder, "--no-rank-metrics")
    try:
        assert b"stepscope_rank_" not in site.get("/metrics").body
    finally:
        process.kill()
        process.communicate()


@pytest.mark.fast
def test_of_no_run_there_is_what_answers(tmp_path: Path) -> None:
    (tmp_path / "stepscope-runs").mkdir()
    process, site = serve(tmp_path)
    try:
        values = samples(site.get("/metrics").body.decode())
    finally:
        process.kill()
        process.communicate()
    names = {name for name, _ in values}
    assert names == {"stepscope_build_info", "stepscope_up", "stepscope_runs"}


@pytest.mark.fast
def test_every_metric_is_in_the_reference(metered: Metered) -> None:
    reference = (ROOT / "docs/reference/metrics.md").read_text()
    resource = re.compile(r"_(average|peak|limit)_(\w+)$")
    for name in {name for name, _ in samples(metered.text())}:
        word = f"stepscope_RESOURCE_{found[1]}_" if (found := resource.search(name)) else name
        assert f"`{word}" in reference, name


@pytest.mark.fast
def test_promtool(metered: Metered, tmp_path: Path) -> None:
    promtool = needs("promtool")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=metered.text(), text=True, capture_output=True
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    for name in ("prometheus.yml", "prometheus-alerts.yml"):
        shutil.copy(CONTRIB / name, tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    config = (tmp_path / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(config.replace("/etc/stepscope/token", "token"))
    (tmp_path / "alerts_test.yml").write_text(ALERTS_TEST)
    for what, name in (("check", "config prometheus.yml"), ("test", "rules alerts_test.yml")):
        done = subprocess.run(
            [promtool, what, *name.split()], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


ALERTS_TEST = """
rule_files: [prometheus-alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'stepscope_run_live{run="a"}', values: '1x60'}
      - {series: 'stepscope_run_live{run="b"}', values: '0x60'}
      - {series: 'stepscope_findings{run="a",code="STUCK",severity="critical"}', values: '1x60'}
      - {series: 'stepscope_findings{run="b",code="STUCK",severity="critical"}', values: '1x60'}
      - {series: 'stepscope_steps_total{run="a"}', values: '0+10x20 200x40'}
      - {series: 'stepscope_records_dropped_total{run="a"}', values: '0x60'}
    alert_rule_test:
      - eval_time: 10m
        alertname: StepscopeStuck
        exp_alerts:
          - exp_labels: {severity: critical, run: a, code: STUCK}
            exp_annotations:
              summary: "a makes no steps: a rank is stuck"
              description: "Which rank, in which phase and since when: stepscope status"
      - {eval_time: 20m, alertname: StepscopeNoSteps, exp_alerts: []}
      - eval_time: 50m
        alertname: StepscopeNoSteps
        exp_alerts:
          - exp_labels: {severity: warning, run: a}
            exp_annotations: {summary: "a has finished no step for 15 minutes"}
      - {eval_time: 50m, alertname: StepscopeDropsRecords, exp_alerts: []}
"""


@contextlib.contextmanager
def running(*command: str, folder: Path) -> Iterator[None]:
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def query(base: str, expression: str) -> list[dict[str, Any]]:
    url = f"{base}/api/v1/query?{urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return json.load(reply)["data"]["result"]
    except OSError:
        return []


def test_prometheus_scrapes_it(metered: Metered, tmp_path: Path) -> None:
    """With the token from a file; every query of the Grafana dashboard is understood."""
    prometheus = needs("prometheus")
    port = free_port()
    config = {
        "scrape_configs": [
            {
                "job_name": "stepscope",
                "scrape_interval": "1s",
                "authorization": {"credentials_file": str(metered.token_file)},
                "static_configs": [{"targets": [f"127.0.0.1:{metered.site.port}"]}],
            }
        ]
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    base = f"http://127.0.0.1:{port}"
    with running(
        prometheus, "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.path=data", folder=tmp_path,
    ):  # fmt: skip
        steps = wait_for(lambda: query(base, "stepscope_steps_total"), "a scrape")
        assert [float(run["value"][1]) for run in steps] == [200, 200]
        assert query(base, 'up{job="stepscope"}')[0]["value"][1] == "1"
        dashboard = json.loads((CONTRIB / "grafana-dashboard.json").read_text())
        expressions = [
            target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
        ]
        assert len(expressions) > 10
        for expression in expressions:
            wanted = expression.replace("$run", ".*")
            wait_for(lambda wanted=wanted: query(base, wanted), expression)


def test_victoria_metrics_takes_remote_write(tmp_path: Path, cpp_loop: str) -> None:
    victoria = needs("victoria-metrics")
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with running(
        victoria, f"-httpListenAddr=127.0.0.1:{port}", "-storageDataPath=data",
        "-search.latencyOffset=0s", folder=tmp_path,
    ):  # fmt: skip
        wait_for(lambda: answers(f"{base}/health"), "VictoriaMetrics")
        done = observe(tmp_path, cpp_loop, "--remote-write", f"{base}/api/v1/write")
        assert "cannot send metrics" not in done.stderr
        url = f"{base}/api/v1/export?{urlencode({'match[]': 'stepscope_steps_total'})}"

        assert answers(f"{base}/internal/force_flush")

        def exported() -> list[dict[str, Any]]:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return [json.loads(line) for line in reply]

        (series,) = wait_for(exported, "what was sent")
        assert series["values"][-1] == done.json()["steps"]["count"]
        assert series["metric"]["run"].startswith("cpp_loop")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def observe(folder: Path, cpp_loop: str, *flags: str) -> Done:
    done = stepscope(folder, "run", "--json", *flags, cpp_loop, "200", "forward=2")
    assert done.code == 0, done.stderr
    return Done(done.code, done.stdout[done.stdout.index("{\n") :], done.stderr)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent; answers with `status`."""

    got: list[tuple[str, dict[str, str], bytes]]
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.got.append((self.path, dict(self.headers.items()), body))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    handler = type("Handler", (Receiver,), {"got": [], "status": status})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", handler.got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.fast
def test_otlp_is_what_the_protocol_says(tmp_path: Path, cpp_loop: str) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    with receiver() as (where, got):
        done = observe(tmp_path, cpp_loop, "--otlp", f"http://user:pass@{where}")
    assert {path for path, _, _ in got} == {"/v1/metrics"}
    _, headers, body = got[-1]
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["Authorization"] == "Basic dXNlcjpwYXNz"
    request = ExportMetricsServiceRequest.FromString(body)
    assert request.SerializeToString() == body  # nothing that the protocol does not know
    (resource,) = request.resource_metrics
    assert resource.resource.attributes[0].key == "service.name"
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "stepscope"
    metrics = {metric.name: metric for metric in scope.metrics}
    steps = metrics["stepscope_steps_total"]
    assert (steps.sum.is_monotonic, steps.sum.aggregation_temporality) == (True, 2)
    (point,) = steps.sum.data_points
    assert point.as_double == done.json()["steps"]["count"]
    assert 0 < point.start_time_unix_nano < point.time_unix_nano
    mean = metrics["stepscope_step_mean_seconds"]
    assert mean.unit == "s"
    assert mean.gauge.data_points[0].as_double == done.json()["steps"]["mean_ms"] / 1e3
    assert "user:pass" not in done.stderr


@pytest.mark.fast
def test_a_receiver_that_fails_is_one_notice(tmp_path: Path, cpp_loop: str) -> None:
    with receiver(status=500) as (where, got):
        done = observe(tmp_path, cpp_loop, "--otlp", f"http://{where}")
    assert len(got) >= 2
    assert done.stderr.count("cannot send metrics") == 1
    assert f"http://{where}/v1/metrics: it answers with status 500" in done.stderr
    nobody = f"http://127.0.0.1:{free_port()}/write"
    done = observe(tmp_path, cpp_loop, "--remote-write", nobody)
    assert done.stderr.count(f"cannot send metrics to {nobody}: Connection refused") == 1


@pytest.mark.fast
def test_a_receiver_that_never_answers_holds_nobody_up(tmp_path: Path, cpp_loop: str) -> None:
    """The run ends while its server still waits: the card is there, and nothing hangs."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = observe(tmp_path, cpp_loop, "--otlp", where)
    assert done.json()["steps"]["count"] == 200
