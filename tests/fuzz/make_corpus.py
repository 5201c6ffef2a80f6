#!/usr/bin/env python3
"""Writes the seeds of reader_fuzz (its header explains the commands): python3 tests/fuzz/make_corpus.py"""

import pathlib
import struct

OPEN, REST = bytes([3]), bytes([6])


def overwrite(offset: int, data: bytes) -> bytes:
    return struct.pack("<BHB", 0, offset, len(data)) + data


def put(offset: int, word: int) -> bytes:
    return struct.pack("<BHB", 1, offset, word)


def resize(size: int) -> bytes:
    return struct.pack("<BH", 2, size)


def drain(start: int, room: int, dead: int) -> bytes:
    return bytes([4, start, room, dead])


def release(tail: int) -> bytes:
    return bytes([5, tail])


# Offsets and numbers of words as in segment_format.h and reader_fuzz.cpp.
CAPACITY, HEAD, NOW, TAIL, NAME_COUNT, NAMES, RING = 24, 1024, 1088, 1152, 2048, 2112, 8192
HUGE, ALL_ONES, HEAD_PLUS_1, ZERO = 19, 22, 11, 0
READ_ALL = drain(ZERO, 255, 0) + drain(ZERO, 255, 1) + REST

SEEDS = {
    "good": OPEN + READ_ALL + release(9) + drain(ZERO, 7, 1),
    "no_room": OPEN + drain(ZERO, 0, 1) + drain(HUGE, 255, 1),
    "cut_after_open": OPEN + resize(9000) + READ_ALL + resize(100) + READ_ALL + resize(0) + READ_ALL,
    "cut_before_open": resize(8192) + OPEN + resize(8241) + OPEN + READ_ALL,
    "longer": resize(65535) + OPEN + READ_ALL,
    "bad_magic": overwrite(0, b"SEGMENT?") + OPEN,
    "bad_version": overwrite(8, b"\x02") + OPEN,
    "huge_capacity": put(CAPACITY, HUGE) + OPEN,
    "huge_head": OPEN + put(HEAD, ALL_ONES) + READ_ALL + put(HEAD, HUGE) + READ_ALL + put(HEAD, HEAD_PLUS_1) + READ_ALL,
    "tail_ahead": OPEN + put(TAIL, ALL_ONES) + put(TAIL + 8, ZERO) + READ_ALL + release(10),
    "long_names": OPEN + put(NAME_COUNT, ALL_ONES) + overwrite(NAMES, b"\x1b[2J" + b"x" * 124) + REST,
    "long_node": OPEN + overwrite(100, b"\xff" * 255) + REST,
    "odd_now": OPEN + put(NOW, ALL_ONES) + put(NOW + 8, HUGE) + REST,
    "odd_records": OPEN + overwrite(RING + 48 * 40, bytes(range(256))[:240]) + READ_ALL,
    "times_backwards": OPEN + put(RING + 48 * 40 + 8, HUGE) + put(RING + 48 * 41 + 16, ZERO) + READ_ALL,
    "sequence_jumps": OPEN + put(RING + 48 * 30, ALL_ONES) + put(RING + 48 * 31, ZERO) + READ_ALL,
}


def main() -> None:
    folder = pathlib.Path(__file__).parent / "corpus"
    folder.mkdir(exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
