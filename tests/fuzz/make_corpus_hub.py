#!/usr/bin/env python3
"""Writes the seeds of hub_fuzz, whose header explains the frames: messages of src/hub/hub.proto."""

import pathlib
import struct


def varint(number: int) -> bytes:
    out = b""
    while True:
        low, number = number & 127, number >> 7
        out += bytes([low | (128 if number else 0)])
        if not number:
            return out


def field(number: int, value: "int | bytes") -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def step(number: int, begin_ns: int) -> bytes:
    phases = b"".join(varint(ns) for ns in (10, 0, 30, 40, 5, 10, 0, 0, 0, 0, 0, 5))
    sync = varint(1 << 3 | 1) + struct.pack("<Q", 77) + field(2, number) + field(3, 4)
    sync += field(4, 180) + field(5, 190) + field(6, 1)
    out = field(1, number) + field(2, begin_ns) + field(3, 100) + field(4, phases)
    return out + field(8, 32) + field(9, 1) + field(13, sync)


def update(rank: int, first: int, count: int, attempt: int = 0) -> bytes:
    identity = field(2, 2) + field(3, attempt) + field(4, 99) + field(5, b"/usr/bin/python3")
    identity += field(9, 1000)
    steps = b"".join(field(3, step(i, 1000 + i * 200)) for i in range(first, first + count))
    memory = field(4, field(1, 1000 + first * 200) + field(2, first) + field(3, 1 << 20))
    totals = field(5, field(1, first + count) + field(18, field(1, 1) + field(2, 2) + field(3, 30)))
    doing = field(6, field(1, b"forward") + field(2, first) + field(4, 1))
    entry = field(1, rank) + field(2, identity) + steps + memory + totals + doing
    return field(1, entry) + field(2, field(5, b"a notice") + field(7, 5))


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack("<HB", len(body), kind) + body


def stranger(first: bytes, second: bytes) -> bytes:
    return bytes([len(first)]) + first + second


HELLO = field(1, field(1, 1) + field(2, 1) + field(3, b"n" * 32) + field(4, b"stepscope 0.1.0"))
CHALLENGE = field(1, field(1, 1) + field(2, b"n" * 32) + field(3, b"stepscope 0.1.0"))
HAVE = field(4, field(1, field(1, 3) + field(2, 2000) + field(3, 5) + field(4, 1000)))

SEEDS = {
    "hello": [frame(9, stranger(HELLO, field(2, field(1, b"m" * 32))))],
    "older": [frame(9, stranger(field(1, field(1, 7) + field(2, 9)), b""))],
    "challenge": [frame(11, stranger(CHALLENGE, field(3, field(1, b"m" * 32))))],
    "refused": [frame(11, stranger(field(2, field(1, b"no") + field(2, 1)), b""))],
    "have": [frame(0, update(3, 0, 9)), frame(13, HAVE)],
    "two_nodes": [frame(0, update(0, 0, 3)), frame(2, update(1, 0, 3)), frame(5, b"")],
    "again": [
        *(frame(0, update(0, 0, 5)), frame(0, update(0, 0, 8))),
        *(frame(1, b""), frame(0, update(0, 3, 9))),
    ],
    "moves": [
        *(frame(0, update(0, 0, 4)), frame(2, update(0, 0, 4, 1))),
        frame(0, update(0, 4, 3, 2)),
    ],
    "join": [
        frame(7, field(1, b"run") + field(5, b"n") + field(6, b"i9")),
        frame(2, update(3, 0, 2)),
    ],
    "gap": [frame(0, update(0, 0, 2)), frame(0, update(0, 30, 2)), frame(5, b"")],
}


def main() -> None:
    folder = pathlib.Path(__file__).parent / "corpus_hub"
    folder.mkdir(exist_ok=True)
    for name, frames in SEEDS.items():
        (folder / name).write_bytes(b"".join(frames))


if __name__ == "__main__":
    main()
