"""A browser's and a script's side of the TCP server, byte by byte where it matters."""

from __future__ import annotations

import base64
import dataclasses
import http.client
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cli.commands import start

URL = re.compile(r"page: (https?://\S+)")


@dataclasses.dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclasses.dataclass
class Site:
    """Where a server listens, and what it printed."""

    port: int
    token: str

    def get(
        self,
        target: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: str | None = None,
        bearer: bool = True,
    ) -> Answer:
        sent = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        if bearer:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, target, body=body, headers=sent)
            reply = connection.getresponse()
            return Answer(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def cookie(self) -> str:
        """As a browser has it after it opened the printed address."""
        answer = self.get(f"/?token={self.token}", bearer=False)
        assert answer.status == 200
        return answer.headers["Set-Cookie"].split(";")[0]

    def raw(self, data: bytes, timeout: float = 20) -> bytes:
        """What comes back for these bytes until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as peer:
            got = b""
            try:
                peer.sendall(data)
                while chunk := peer.recv(65536):
                    got += chunk
            except (ConnectionError, TimeoutError):
                pass
            return got

    def upgrade(self, target: str, headers: Mapping[str, str]) -> tuple[int, socket.socket]:
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
            **headers,
        }
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        peer.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = peer.recv(1)
            assert byte, head
            head += byte
        return int(head.split()[1]), peer

    def frames(self, target: str) -> Iterator[dict[str, Any]]:
        status, peer = self.upgrade(target, {"Authorization": f"Bearer {self.token}"})
        assert status == 101
        with peer:
            yield from frames_of(peer)


def exactly(peer: socket.socket, count: int) -> bytes | None:
    got = b""
    while len(got) < count:
        chunk = peer.recv(count - len(got))
        if not chunk:
            return None
        got += chunk
    return got


def frames_of(peer: socket.socket) -> Iterator[dict[str, Any]]:
    """Text frames until the server says goodbye; a goodbye and pings are answered."""
    text = b""
    while head := exactly(peer, 2):
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(exactly(peer, 2 if size == 126 else 8) or b"")
        body = exactly(peer, size) or b""
        kind = head[0] & 15
        if kind in (8, 9):
            send_frame(peer, body, 8 if kind == 8 else 10)
            if kind == 8:
                return
            continue
        text += body
        if head[0] & 128:
            yield json.loads(text)
            text = b""


def send_frame(peer: socket.socket, body: bytes, kind: int = 1) -> None:
    mask = os.urandom(4)
    size = bytes([128 | len(body)]) if len(body) < 126 else b"\xfe" + len(body).to_bytes(2)
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(body))
    peer.sendall(bytes([128 | kind]) + size + mask + masked)


def site_of(process: subprocess.Popen[str]) -> Site:
    """Reads stderr up to the address."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := URL.search(line):
            url = urlsplit(found[1])
            assert url.port
            return Site(url.port, url.query.removeprefix("token="))
    raise AssertionError(f"no address: {said}")


def serve(
    folder: Path, *arguments: str, env: Mapping[str, str | None] | None = None
) -> tuple[subprocess.Popen[str], Site]:
    process = start(folder, "serve", *arguments, env=env)
    return process, site_of(process)
