"""A link between two network namespaces that delays and loses packets.

`slow_link.py ONE TWO ONE_ADDRESS TWO_ADDRESS DELAY_MS LOSS`: a tun device in each namespace, and
what comes out of one goes into the other DELAY_MS later, or, a share LOSS of it, not at all. Does
what `tc netem` does, where the kernel has no such module. Prints "ready"; ends when it is killed.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def tun_in(namespace: str, name: str, address: str) -> int:
    """The descriptor of a new tun device there: one packet a read or write."""
    place = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    if LIBC.setns(place, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns", namespace)
    os.close(place)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "addr", "add", f"{address}/24", "dev", name], check=True)
    subprocess.run(["ip", "link", "set", name, "up"], check=True)
    return tun


def main() -> None:
    one, two, one_address, two_address = sys.argv[1:5]
    delay_s, loss = float(sys.argv[5]) / 1000, float(sys.argv[6])
    ends = [tun_in(one, "slow", one_address), tun_in(two, "slow", two_address)]
    chance = random.Random(0)
    on_the_way: list[tuple[float, int, int, bytes]] = []
    number = 0
    print("ready", flush=True)
    while True:
        wait = max(0.0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for tun in select.select(ends, [], [], wait)[0]:
            packet = os.read(tun, 65536)
            other = ends[1] if tun == ends[0] else ends[0]
            number += 1
            if chance.random() >= loss:
                due = time.monotonic() + delay_s
                heapq.heappush(on_the_way, (due, number, other, packet))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, _, tun, packet = heapq.heappop(on_the_way)
            os.write(tun, packet)


if __name__ == "__main__":
    main()
