"""A hub of its own for tests, and the words of a simulated run that joins it."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from cli.commands import start


@contextlib.contextmanager
def hub_process(folder: Path, token: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A hub of its own, whose runs are in folder/of-hub: its URL and process."""
    (folder / "hub-token").write_text(token)
    (folder / "hub-token").chmod(0o600)
    process = start(folder, "hub", "--listen", "127.0.0.1:0", "--token-file", "hub-token",
                    "--run-dir", "of-hub")  # fmt: skip
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"listening on (\S+)", line):
                yield found[1], process
                return
        raise AssertionError("the hub did not listen")
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def hub(folder: Path, token: str) -> Iterator[str]:
    with hub_process(folder, token) as (url, _):
        yield url


def node(folder: Path, url: str, token: str, *arguments: str) -> list[str]:
    (folder / "token").write_text(token)
    (folder / "token").chmod(0o600)
    return ["simulate", *arguments, "--hub", url, "--token-file", "token"]
