#!/usr/bin/env python3
"""Writes the seeds of web_fuzz, whose header explains them."""

import pathlib

TOKEN = b"0123456789abcdef0123456789abcdef"


def frame(kind: int, body: bytes, final: bool = True) -> bytes:
    size = bytes([128 | len(body)]) if len(body) < 126 else b"\xfe" + len(body).to_bytes(2, "big")
    return bytes([(128 if final else 0) | kind]) + size + b"\0\0\0\0" + body


SEEDS = {
    "stranger": b"\0GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "token": b"\0GET /?token=" + TOKEN + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "evil": b"\0GET / HTTP/1.1\r\nHost: evil\r\nOrigin: http://evil\r\n"
    b"Cookie: stepscope-1=2\r\n\r\n",
    "upgrade": b"\0GET /v1/live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    "keep": b"\1\r\nGET /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
    + TOKEN
    + b"\r\n\r\n",
    "chunked": b"\1Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
    "long": b"\1Content-Length: 99999999999\r\n\r\nabc",
    "expect": b"\1Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "frames": b"\2" + frame(1, b"hello") + frame(9, b"ping") + frame(8, b"\x03\xe8bye"),
    "parts": b"\2" + frame(1, b"a", False) + frame(0, b"b") + frame(2, b"x" * 300),
    "bad": b"\2" + b"\xff\x7f" + b"\xff" * 12,
    "access": b"\3/?a=1&token=%30x\nLocalHost:80\nhttp://localhost:80\nstepscope-00000000=1; a=b",
    "v6": b"\3Bearer " + TOKEN + b"\n[::1]:8080\nnull\n=;;a=",
}


def main() -> None:
    folder = pathlib.Path(__file__).parent / "corpus_web"
    folder.mkdir(exist_ok=True)
    for name, content in SEEDS.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
