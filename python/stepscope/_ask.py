"""Asks the agent of this run, over its Unix socket, what it would write at this moment.

Called when a framework logs or a cell is redrawn, never on the step path. One connection a question
and one deadline for all of it: an agent that is busy is not waited for, and gives None.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

WITHIN_S = 0.01  # the answer takes a millisecond or two; a training step is not held up for it
AT_END_S = 1.0  # where training is over
_MOST_BYTES = 16 * 1024 * 1024


def ask(folder: str, target: str, *, within_s: float = WITHIN_S) -> bytes | None:
    """The body of the agent's answer to `GET target`, or None: no agent, an error, too late."""
    deadline = time.monotonic() + within_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        try:
            agent.settimeout(within_s)
            agent.connect(os.path.join(folder, "api.sock"))
            agent.sendall(
                f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            reply = b""
            while len(reply) < _MOST_BYTES:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return None
                agent.settimeout(left_s)
                piece = agent.recv(256 * 1024)
                if not piece:
                    break
                reply += piece
        except OSError:  # a deadline that passed is one too
            return None
    head, _, body = reply.partition(b"\r\n\r\n")
    return body if b" 200 " in head.partition(b"\r\n")[0] else None


def summary(
    folder: str | None, *, within_s: float = WITHIN_S, fresh: bool = False
) -> dict[str, Any] | None:
    """summary.json of this moment (docs/reference/summary.md), or None. fresh: with every step that
    has ended by now; else it may be a second old.
    """
    if folder is None:
        return None
    target = "/v1/summary?compact" + ("&fresh" if fresh else "")
    body = ask(folder, target, within_s=within_s)
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None
