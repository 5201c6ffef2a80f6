"""What a peer of any kind can do to `stepscope hub`: 10,000 connections of nobody."""

from __future__ import annotations

import collections
import resource
import socket
from pathlib import Path

import pytest
from cli.commands import stepscope
from cli.hubs import hub_process, node

pytestmark = pytest.mark.fast

TOKEN = "a-token-of-the-tests-0123456789"
MANY = 10_000


def test_10000_connections_harm_nobody(tmp_path: Path) -> None:
    """Held open as far as this process may: the hub keeps few, says so in few lines, and a node
    joins while they are there.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    open_at_once = min(MANY, most - 200) if most != resource.RLIM_INFINITY else MANY
    held: collections.deque[socket.socket] = collections.deque()
    try:
        with hub_process(tmp_path, TOKEN) as (url, process):
            port = int(url.rsplit(":", 1)[1])
            for _ in range(MANY):
                if len(held) == open_at_once:
                    held.popleft().close()
                held.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            descriptors = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            joined = stepscope(
                tmp_path, *node(tmp_path, url, TOKEN, "--ranks", "16", "--steps", "50")
            )
            assert joined.code == 0, joined.stderr
            process.terminate()
            said = process.stderr.read() if process.stderr else ""
            assert process.wait() == 0
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert descriptors < 600, descriptors
    refused = [line for line in said.splitlines() if "and did not prove the token" in line]
    assert refused, said
    assert "256 others came" in refused[0]
    assert len(said.splitlines()) < 100  # a line a second of a kind
