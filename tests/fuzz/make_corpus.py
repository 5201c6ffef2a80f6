#!/usr/bin/env python3
"""Writes the seeds of reader_fuzz, whose header explains the commands."""

import pathlib
import struct

OPEN, REST = bytes([3]), bytes([6])


def overwrite(offset: int, data: bytes) -> bytes:
    return struct.pack("<BHB", 0, offset, len(data)) + data


def put(offset: int, word: int) -> bytes:
    return struct.pack("<BHB", 1, offset, word)


def resize(size: int) -> bytes:
    return struct.pack("<BH", 2, size)


def drain(start: int, room: int) -> bytes:
    return bytes([4, start, room])


def release(tail: int) -> bytes:
    return bytes([5, tail])


# Offsets and numbers of words as in segment_format.h and reader_fuzz.cpp.
CAPACITY, TAIL, NAME_COUNT, NAMES, RING, EVENT = 24, 1088, 2048, 2112, 8192, 32
GROUP_COUNT, GROUPS = 1216, 1232
ZERO, OLDEST, HUGE, ALL_ONES = 0, 7, 19, 22
ALL = drain(OLDEST, 255) + drain(ZERO, 255) + REST
EVENT_40 = RING + EVENT * 40

SEEDS = {
    "good": [OPEN, ALL, release(9), drain(OLDEST, 7)],
    "no_room": [OPEN, drain(OLDEST, 0), drain(HUGE, 255)],
    "cut_after_open": [OPEN, resize(9000), ALL, resize(100), ALL, resize(0), ALL],
    "cut_before_open": [resize(8192), OPEN, resize(8241), OPEN, ALL],
    "longer": [resize(65535), OPEN, ALL],
    "bad_magic": [overwrite(0, b"SEGMENT?"), OPEN],
    "bad_version": [overwrite(8, b"\x02"), OPEN],
    "huge_capacity": [put(CAPACITY, HUGE), OPEN],
    "tail_ahead": [OPEN, put(TAIL, ALL_ONES), put(TAIL + 8, ZERO), ALL, release(10)],
    "many_names": [OPEN, put(NAME_COUNT, ALL_ONES), overwrite(NAMES, b"\x1b[2J" + 99 * b"x"), REST],
    "many_groups": [OPEN, put(GROUP_COUNT, ALL_ONES), put(GROUPS, HUGE), REST],
    "long_node": [OPEN, overwrite(100, b"\xff" * 255), REST],
    "odd_events": [OPEN, overwrite(EVENT_40 + 8, bytes(range(240))), ALL],
    "times_backwards": [OPEN, put(EVENT_40 + 8, HUGE), put(EVENT_40 + 40, ZERO), ALL],
    "sequence_jumps": [OPEN, put(RING + EVENT * 30, ALL_ONES), put(RING + EVENT * 31, ZERO), ALL],
}


def main() -> None:
    folder = pathlib.Path(__file__).parent / "corpus"
    folder.mkdir(exist_ok=True)
    for name, commands in SEEDS.items():
        (folder / name).write_bytes(b"".join(commands))


if __name__ == "__main__":
    main()
