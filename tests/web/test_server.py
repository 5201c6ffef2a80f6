"""`stepscope serve`: who may talk to it, what it answers, and that nobody can end it through it."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.commands import stepscope, wait_for
from web.client import Site, exactly, send_frame, serve

pytestmark = pytest.mark.fast

HOSTILE = "<img src=x onerror=alert(1)>'\" &"


class Served:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("first", HOSTILE):
            done = stepscope(
                folder, "simulate", "--ranks", "2", "--steps", "60", "--quiet", "--run-dir",
                f"stepscope-runs/{name}",
            )  # fmt: skip
            assert done.code == 0, done.stderr
        (folder / "secret").write_text("SECRET")
        (folder / "stepscope-runs" / "first" / "note").write_text("SECRET")
        self.process, self.site = serve(folder)

    def key(self, name: str) -> str:
        runs = self.site.get("/v1/runs").json()["runs"]
        return next(run["key"] for run in runs if run["folder"].endswith("/" + name))

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.close()


@pytest.fixture
def site(served: Served) -> Site:
    return served.site


PATHS = ("/", "/assets/index.js", "/v1/runs", "/metrics", "/v1/compare", "/nothing", "/v1/live")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_there_is_one_notice(site: Site, path: str) -> None:
    wrong = site.token[:-1] + ("A" if site.token[-1] != "A" else "B")
    name = site.cookie().split("=")[0]
    notices = set()
    for headers in (
        {},
        {"Authorization": f"Bearer {wrong}"},
        {"Authorization": site.token},
        {"Cookie": f"{name}={wrong}"},
        {"Cookie": f"{name}={site.token}"},  # the token is no cookie
        {"Cookie": f"{name}="},
    ):
        answer = site.get(path, headers, bearer=False)
        assert answer.status == 401
        notices.add(answer.body)
    for query in ("", "token=", f"token={wrong}", f"TOKEN={site.token}", "token=%zz"):
        assert site.get(f"{path}?{query}", bearer=False).status == 401
    if path != "/":  # the token in an address opens the page alone
        assert site.get(f"{path}?token={site.token}", bearer=False).status == 401
    assert len(notices) == 1


def test_the_printed_address_gives_the_page_and_a_cookie(site: Site) -> None:
    answer = site.get(f"/?token={site.token}", bearer=False)
    assert answer.status == 200
    name, _, rest = answer.headers["Set-Cookie"].partition("=")
    value, *attributes = [part.strip() for part in rest.split(";")]
    assert name.startswith("stepscope-")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert site.token not in value
    cookie = {"Cookie": f"other=1; {name}={value}"}
    assert site.get("/", cookie, bearer=False).status == 200
    assert site.get("/v1/runs", cookie, bearer=False).status == 200
    assert site.get("/v1/runs").status == 200  # Bearer


def test_two_servers_on_one_host_do_not_log_each_other_out(served: Served) -> None:
    process, other = serve(served.folder)
    try:
        cookies = {"Cookie": "; ".join([served.site.cookie(), other.cookie()])}
        assert cookies["Cookie"].count("stepscope-") == 2
        names = {part.split("=")[0] for part in cookies["Cookie"].split("; ")}
        assert len(names) == 2
        for one in (served.site, other):
            assert one.get("/v1/runs", cookies, bearer=False).status == 200
        mine = {"Cookie": served.site.cookie()}
        assert other.get("/v1/runs", mine, bearer=False).status == 401
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("LOCALHOST:65535", 200),
        ("[::1]:8080", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.", 403),
        ("127.0.0.1:", 403),
        ("127.0.0.1:99999", 403),
        ("127.0.0.1@evil.example", 403),
        ("", 403),
    ],
)
def test_host(site: Site, host: str, status: int) -> None:
    for path in ("/v1/runs", f"/?token={site.token}"):
        assert site.get(path, {"Host": host}).status == status


def test_origin_must_be_the_host(site: Site) -> None:
    here = f"http://127.0.0.1:{site.port}"
    for origin, status in (
        (here, 200),
        ("http://evil.example", 403),
        ("null", 403),
        (f"https://127.0.0.1:{site.port}", 403),
        (f"http://127.0.0.1:{site.port + 1}", 403),
        (f"{here}.evil.example", 403),
    ):
        assert site.get("/v1/runs", {"Origin": origin}).status == status


def test_cross_site_websocket_is_refused(served: Served) -> None:
    site, path = served.site, f"/v1/runs/{served.key('first')}/live"
    cookie = {"Cookie": site.cookie()}
    for headers, status in (
        ({}, 401),
        ({**cookie, "Origin": "http://evil.example"}, 403),
        ({**cookie, "Host": "evil.example"}, 403),
        ({**cookie, "Origin": f"http://127.0.0.1:{site.port}"}, 101),
    ):
        got, peer = site.upgrade(path, headers)
        peer.close()
        assert got == status, headers


def test_every_reply_has_the_security_headers(site: Site) -> None:
    replies = [
        site.get("/"),
        site.get("/v1/runs"),
        site.get("/nothing"),
        site.get("/", bearer=False),
        site.get("/", {"Host": "evil"}),
    ]
    assert [reply.status for reply in replies] == [200, 200, 404, 401, 403]
    for reply in replies:
        policy = reply.headers["Content-Security-Policy"]
        for word in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
            assert word in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in reply.headers


def test_runs(served: Served) -> None:
    runs = served.site.get("/v1/runs").json()["runs"]
    assert {run["name"] for run in runs} == {"first", HOSTILE} or len(runs) == 2
    for run in runs:
        assert run["key"].replace("-", "").replace("_", "").isalnum()
        summary = json.loads((Path(run["folder"]) / "summary.json").read_text())
        base = f"/v1/runs/{run['key']}"
        assert served.site.get(f"{base}/summary").json() == summary
        assert (run["state"], run["steps"]) == ("ended", 60)
        assert run["mean_ms"] == summary["steps"]["mean_ms"]
        assert run["verdict"]["code"] == summary["verdict"]["code"]
        assert run["phases"]["forward"] == summary["phases"]["forward"]["share"]
        assert served.site.get(f"{base}/health").json()["state"] == "ended"
        assert served.site.get(f"{base}/card").status == 200
        assert served.site.get(f"{base}/control", method="POST", body="{}").status == 405


def test_hostile_names_are_data(served: Served) -> None:
    answer = served.site.get("/v1/runs")
    assert answer.headers["Content-Type"] == "application/json"
    assert any(run["folder"].endswith(HOSTILE) for run in answer.json()["runs"])


TRAVERSALS = (
    "/../secret", "/assets/../../secret", "/%2e%2e/secret", "/assets/%2e%2e%2f%2e%2e%2fsecret",
    "//etc/passwd", "/assets//etc/passwd", "/v1/runs/../../secret", "/v1/runs/..%2f..%2fsecret",
    "/v1/runs/first", "/v1/runs/first/note", "/v1/runs/{key}/note", "/v1/runs/{key}/../note",
    "/v1/runs/{key}/%2e%2e/note", "/v1/runs/{key}/run.db", "/v1/runs//summary", "/v1/runs/",
)  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_outside_the_api_can_be_read(served: Served, path: str) -> None:
    answer = served.site.get(path.format(key=served.key("first")))
    assert answer.status == 404
    assert b"SECRET" not in answer.body
    assert b"root:" not in answer.body


def test_hostile_bytes_do_not_end_it(served: Served) -> None:
    chance = random.Random(20261130)
    head = f"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.site.token}"
    for number in range(40):
        junk = chance.randbytes(chance.randrange(1, 3000))
        data = (
            junk,
            b"GET / HTTP/1.1\r\nHost: " + junk + b"\r\n\r\n",
            head.encode() + b"\r\nContent-Length: 99999999999999999999\r\n\r\n" + junk,
            b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n",
        )[number % 4]
        assert len(served.site.raw(data + b"\r\n\r\n")) < 10_000
    too_large = served.site.get("/v1/runs", method="POST", body="x" * 5000)
    assert too_large.status == 413
    assert served.process.poll() is None
    assert served.site.get("/v1/runs").status == 200


def test_strangers_make_way(served: Served) -> None:
    """Many who say nothing, or a byte now and then: the oldest are let go, others come in."""
    strangers = []
    for _ in range(150):
        peer = socket.create_connection(("127.0.0.1", served.site.port), timeout=30)
        peer.sendall(b"G")
        strangers.append(peer)
    assert served.site.get("/v1/runs").status == 200
    assert strangers[0].recv(1) == b""  # was let go
    for peer in strangers:
        peer.close()


def test_viewer_that_floods_or_sends_much(served: Served) -> None:
    path = f"/v1/runs/{served.key('first')}/live"
    bearer = {"Authorization": f"Bearer {served.site.token}"}
    status, peer = served.site.upgrade(path, bearer)
    assert status == 101
    with peer:
        send_frame(peer, b"x" * 2000)  # larger than a client may: it is let go
        while exactly(peer, 1):
            pass
    assert served.site.get("/v1/runs").status == 200


def test_frames_of_an_ended_run(served: Served) -> None:
    key = served.key("first")
    frames = list(served.site.frames(f"/v1/runs/{key}/live"))
    assert [frame["type"] for frame in frames] == ["tick", "summary", "end"]
    assert (frames[0]["state"], frames[0]["gap"]) == ("ended", True)
    brief = served.site.get(f"/v1/runs/{key}/summary?brief").json()
    assert frames[1]["summary"] == brief
    whole = served.site.get(f"/v1/runs/{key}/summary").json()
    assert brief == {key: whole[key] for key in whole if key not in ("ranks", "now", "loaders")}


def test_live_asks_for_a_run(site: Site) -> None:
    bearer = {"Authorization": f"Bearer {site.token}"}
    for path in ("/v1/live", "/v1/runs/nobody-12345678/live", "/"):
        status, peer = site.upgrade(path, bearer)
        peer.close()
        assert status == 404


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_with_0(served: Served, number: int) -> None:
    process, site = serve(served.folder, "stepscope-runs/first")
    assert site.get("/v1/summary").status == 200  # of the only run
    status, peer = site.upgrade("/v1/live", {"Authorization": f"Bearer {site.token}"})
    assert status == 101
    process.send_signal(number)
    process.communicate(timeout=30)
    peer.close()
    assert process.returncode == 0


def said(folder: Path, *arguments: str) -> tuple[int, str]:
    done = stepscope(folder, *arguments)
    return done.code, done.stderr


def test_token_file(served: Served, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef-of-a-file\n")
    code, text = said(served.folder, "serve", "--token-file", str(token))
    assert code == 2
    assert "can be read by other users" in text
    token.chmod(0o600)
    process, site = serve(served.folder, "--token-file", str(token), "--allow-host", "Node7")
    try:
        assert site.token == ""  # none was printed
        site.token = "0123456789abcdef-of-a-file"
        assert site.get("/v1/runs").status == 200
        assert site.get("/v1/runs", {"Host": "node7:1"}).status == 200
        assert site.get("/v1/runs", {"Host": "node8:1"}).status == 403
    finally:
        process.kill()
        rest = process.communicate()[1]
    assert site.token not in rest


def test_wrong_use(served: Served) -> None:
    for arguments, word in (
        (("serve", "nowhere"), "there is no run nowhere"),
        (("serve", "--listen", "7"), "is not ADDR:PORT"),
        (("serve", "--allow-host", "a/b"), "is not a host's name"),
        (("serve", "--tls-cert", "x"), "go together"),
        (("serve", "--listen", f"127.0.0.1:{served.site.port}"), "cannot listen on"),
    ):
        code, text = said(served.folder, *arguments)
        assert (code, word in text) == (2, True), text


def test_tls(served: Served, tmp_path: Path) -> None:
    import ssl
    import urllib.request

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    process, site = serve(served.folder, "--tls-cert", str(certificate), "--tls-key", str(key))
    try:
        context = ssl.create_default_context(cafile=str(certificate))
        url = f"https://localhost:{site.port}"
        with urllib.request.urlopen(f"{url}/?token={site.token}", context=context) as reply:
            assert reply.status == 200
            assert "Secure" in reply.headers["Set-Cookie"]
        request: Any = urllib.request.Request(
            f"{url}/v1/runs", headers={"Authorization": f"Bearer {site.token}"}
        )
        with urllib.request.urlopen(request, context=context) as reply:
            assert len(json.load(reply)["runs"]) == 2
        assert site.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")[:4] != b"HTTP"
    finally:
        process.kill()
        process.communicate()


def test_new_runs_appear(served: Served) -> None:
    done = stepscope(
        served.folder, "simulate", "--ranks", "1", "--steps", "30", "--quiet", "--run-dir",
        "stepscope-runs/later",
    )  # fmt: skip
    assert done.code == 0
    wait_for(lambda: len(served.site.get("/v1/runs").json()["runs"]) == 3, "the third run")
    summary = served.site.get(f"/v1/runs/{served.key('later')}/summary").json()
    assert summary["steps"]["count"] == 30
