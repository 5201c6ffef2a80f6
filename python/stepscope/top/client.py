"""Asks a run's API: over a Unix socket, or at a URL with its token.

One asyncio task uses it; one request a connection, each bounded in time and size. Raises Refused
for an answer that says no, OSError for everything that kept an answer from coming.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import ssl
import urllib.parse
from pathlib import Path
from typing import Any

from stepscope.top import reply

TIMEOUT_S = 5.0
MOST_BYTES = 64 << 20  # 4,096 ranks in one summary are 3 MB


class Refused(Exception):
    """The server answered, and not with 200."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


@dataclasses.dataclass
class Place:
    """Where the API is. `base` is the run's path, /v1 or /v1/runs/KEY; empty: not looked up yet."""

    socket: str = ""
    host: str = ""
    port: int = 0
    secure: bool = False
    ca: str = ""
    token: str = ""
    base: str = ""

    def __str__(self) -> str:
        return self.socket or f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"


def place_of_url(url: str, token_file: str = "", ca: str = "") -> Place:
    """Of http(s)://HOST:PORT[/v1/runs/KEY][/?token=T]. Raises ValueError: what is wrong with it."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url} is not http://HOST:PORT/?token=TOKEN")
    secure = parts.scheme == "https"
    words = [word for word in parts.path.split("/") if word]
    if words and (len(words) != 3 or words[:2] != ["v1", "runs"]):
        raise ValueError(f"{parts.path} is no run's place on a server: /v1/runs/KEY")
    token = urllib.parse.parse_qs(parts.query).get("token", [""])[0]
    if token_file:
        token = Path(token_file).read_text().strip()
    if not token.isascii() or not token.isprintable():
        raise ValueError("the token holds letters that no token has")
    return Place(
        host=parts.hostname,
        port=parts.port or (443 if secure else 80),
        secure=secure,
        ca=ca,
        token=token,
        base="/" + "/".join(words) if words else "",
    )


class Api:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.runs = 1  # that the server holds

    async def get(self, path: str, timeout_s: float = TIMEOUT_S) -> Any:
        """JSON of `path` below the run's place: get("/summary?compact")."""
        text = await self.text(path, timeout_s)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Refused(200, f"{self.place} did not answer with JSON") from error

    async def text(self, path: str, timeout_s: float = TIMEOUT_S) -> str:
        if not self.place.base:
            self.place.base = "/v1" if self.place.socket else await self._newest_run(timeout_s)
        return await self._fetch(self.place.base + path, timeout_s)

    async def _newest_run(self, timeout_s: float) -> str:
        found = reply.items(json.loads(await self._fetch("/v1/runs", timeout_s)), "runs")
        keys = [key for run in found if (key := reply.word(run, "key"))]
        if not keys:
            raise Refused(404, f"{self.place} serves no run yet", "stepscope run python train.py")
        self.runs = len(keys)
        return "/v1/runs/" + urllib.parse.quote(keys[0], safe="")

    async def _fetch(self, target: str, timeout_s: float) -> str:
        try:
            return await asyncio.wait_for(self._ask(target), timeout_s)
        except asyncio.TimeoutError as error:
            raise TimeoutError(f"no answer within {timeout_s:.0f} s") from error

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.place.socket:
            return await asyncio.open_unix_connection(self.place.socket)
        context = ssl.create_default_context(cafile=self.place.ca or None)
        return await asyncio.open_connection(
            self.place.host, self.place.port, ssl=context if self.place.secure else None
        )

    async def _ask(self, target: str) -> str:
        reader, writer = await self._connect()
        host = "localhost" if self.place.socket else f"{self.place.host}:{self.place.port}"
        lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
        if self.place.token:
            lines.append(f"Authorization: Bearer {self.place.token}")
        try:
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
            await writer.drain()
            return await self._read(reader)
        finally:
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> str:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ConnectionError(f"{self.place} closed the connection") from error
        words = head[0].split()
        if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
            raise ConnectionError(f"{self.place} does not speak HTTP")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            raise ConnectionError(f"{self.place} sent an answer of no known or no sane length")
        try:
            body = (await reader.readexactly(int(length))).decode(errors="replace")
        except asyncio.IncompleteReadError as error:
            raise ConnectionError(f"{self.place} closed the connection") from error
        status = int(words[1])
        if status != 200:
            raise _refusal(status, body)
        return body


def _refusal(status: int, body: str) -> Refused:
    said: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        said = json.loads(body)
    message = reply.word(said, "error") or f"the server answered {status}"
    hint = reply.word(said, "hint")
    if status == 401 and not hint:
        hint = "give the whole URL that was printed, ?token=... included, or --token-file FILE"
    return Refused(status, message, hint)
