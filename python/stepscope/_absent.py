"""The same names as the extension, doing nothing: it has no build for this system or Python."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager


def say_why(error: ImportError) -> None:
    version = "{}.{}".format(*sys.version_info[:2])
    print(
        f"stepscope: not recording: no build for Python {version} on {sys.platform} ({error})",
        file=sys.stderr,
    )


def start_without_run() -> None: ...


def start(*, live: bool | None = None) -> None: ...


def stop() -> None: ...


def step_context() -> AbstractContextManager[object]:
    return contextlib.nullcontext()


def phase_context(name: str) -> AbstractContextManager[object]:
    return contextlib.nullcontext()


def pause() -> None: ...


def resume() -> None: ...
