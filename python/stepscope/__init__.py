"""Stepscope: where each step of a PyTorch training run goes.

Most people need none of this: `stepscope run python train.py` changes nothing in the script. In
code:

    from stepscope import trace_step

    for batch in loader:
        with trace_step(model):
            ...

Importing stepscope imports neither torch nor a framework, and starts nothing; the first
`trace_step` does. Where the extension has no build (not Linux, another Python), everything here is
there and does nothing, and says so once.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

from stepscope._load import Run, load
from stepscope._stragglers import identify_stragglers
from stepscope._tune import tune_loader

try:
    from stepscope import _native, _session

    _start = _session.start_without_run
    start, stop = _session.start, _session.stop
except ImportError as _error:
    from stepscope import _absent as _native  # pyright: ignore[reportAssignmentType]

    _start = _native.start_without_run
    start, stop = _native.start, _native.stop
    _native.say_why(_error)

__version__ = "0.1.0"
# For CMake's find_package(stepscope): the C++ recorder (docs/integrations/cpp.md).
cmake_prefix_path = os.path.dirname(os.path.abspath(__file__))
__all__ = [
    "Run",
    "identify_stragglers",
    "load",
    "pause",
    "phase",
    "resume",
    "start",
    "stop",
    "trace_step",
    "tune_loader",
]

_step: AbstractContextManager[object] = _native.step_context()
_phases: dict[str, AbstractContextManager[object]] = {}
_started = False


def trace_step(model: Any = None) -> AbstractContextManager[object]:
    """One training step: `with trace_step(model):` around forward, backward and optimizer.

    A step lasts from the exit of the previous block to the exit of this one, so the batch fetched
    before the block belongs to it. Once entered, only `trace_step` makes steps: one block is one
    step even when it accumulates gradients. Blocks inside a block are ignored. An exception that
    leaves the block makes the step a failed one and goes on to the caller.

    `model` may be any torch.nn.Module, or None; it is only read. Never raises.
    """
    global _started
    if not _started:
        _started = True
        _start()
    return _step


def phase(name: str, /) -> AbstractContextManager[object]:
    """Time of a part of the step under a name of yours: `with stepscope.phase("augment"):`.

    A built-in name (input, h2d, forward, backward, sync, optimizer, checkpoint, validation,
    compile, gc, profiler) adds to that phase; any other becomes a row of its own, up to 64 names;
    more count as other. Raises TypeError when `name` is no string, ValueError when it is empty or
    longer than 63 bytes.
    """
    known = _phases.get(name)
    if known is None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"phase name must be a string, not {type(name).__name__}")
        if not 0 < len(name.encode("utf-8", "replace")) <= 63 or "\0" in name:
            raise ValueError(f"phase name must have 1 to 63 bytes and no NUL: {name!r}")
        known = _phases[name] = _native.phase_context(name)
    return known


def pause() -> None:
    """Record nothing until `resume()`. The steps it touches are marked and not averaged."""
    _native.pause()


def resume() -> None:
    """Record again after `pause()`."""
    _native.resume()
