"""`tune_loader`: runs the caller's loop with one DataLoader after the other.

Which settings come next, within which limits, and which are best decides `stepscope loader-search`
(src/cli/loader_search.cpp), a process that is asked over a pipe.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import json
import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Generator
from typing import Any

from stepscope._runless import find_binary
from stepscope.hooks import loader_settings

_LEAST_STEPS = 8
_PATIENCE_S = 10.0
_NOT_THEIRS = ("batch_wise", "worker_threads")  # no argument of a DataLoader


@contextlib.contextmanager
def _same_random_state(torch: Any, options: dict[str, Any]) -> Generator[None]:
    """Puts back the states that fetching draws from: torch's, Python's, NumPy's, the loader's."""
    numpy: Any = sys.modules.get("numpy")
    generators = [options.get("generator"), getattr(options.get("sampler"), "generator", None)]
    states = [(each, each.get_state()) for each in generators if each is not None]
    python = random.getstate()
    arrays = numpy.random if numpy is not None else None
    drawn = arrays.get_state() if arrays is not None else None
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        if arrays is not None:
            arrays.set_state(drawn)
        for generator, state in states:
            generator.set_state(state)


@contextlib.contextmanager
def _not_recorded() -> Generator[None]:
    """Trials are no training: where this process is observed, its steps begin after them."""
    try:
        native = importlib.import_module("stepscope._native")
    except ImportError:  # no build for this system: nothing is recorded
        yield
        return
    if "STEPSCOPE_SEGMENTS" in os.environ:
        native.wake()  # else the first batch would
    observed = native.is_recording()
    if observed:
        native.pause()
    try:
        yield
    finally:
        if observed:
            native.resume()


class Trial:
    """One loader in the loop: when each batch was asked for and came."""

    def __init__(self, request: dict[str, Any], seconds: float) -> None:
        self.wanted = request["warmup"] + request["steps"]
        self.least = request["warmup"] + min(_LEAST_STEPS, request["steps"])
        self.until_ns = time.perf_counter_ns() + int(seconds * 1e9)
        self.asked: list[int] = []
        self.got: list[int] = []
        self.starts: list[int] = []  # batches that began an epoch
        self.end = 0
        self.size = (0, 0)

    def run(self, loader: Any, step: Callable[[Any], Any] | None) -> None:
        self.end = time.perf_counter_ns()
        while not self.enough():
            before = len(self.got)
            self.starts.append(before)
            self.epoch(loader, step)
            if len(self.got) == before:
                raise ValueError("tune_loader: an epoch of this dataset has no batch")

    def epoch(self, loader: Any, step: Callable[[Any], Any] | None) -> None:
        # From the end of the last step, the exhausting fetch of the epoch before included.
        asked = self.end
        for batch in loader:
            self.got.append(time.perf_counter_ns())
            self.asked.append(asked)
            if len(self.got) == 1:
                self.size = loader_settings.sizes(batch)
            if step is not None:
                step(batch)
            self.end = asked = time.perf_counter_ns()
            if self.enough():
                return

    def enough(self) -> bool:
        count = len(self.got) - len(self.starts)
        late = time.perf_counter_ns() > self.until_ns
        return count >= self.wanted or (late and count >= self.least)

    def told(self, seconds: float, failed: str | None) -> dict[str, Any]:
        return {
            "asked_ns": self.asked,
            "got_ns": self.got,
            "epoch_starts": self.starts,
            "end_ns": self.end,
            "seconds": seconds,
            "failed": failed,
            "batch_bytes": self.size[0],
            "tensors": self.size[1],
        }


class _Search:
    """The process that decides."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [find_binary(), "loader-search"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # A ^C at the terminal is ours to handle: it asks for the best so far.
            start_new_session=True,
        )
        self.tell(first)

    def tell(self, line: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def asked(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise OSError(
                f"stepscope loader-search ended with exit code {self.process.wait()}; "
                "hint: stepscope doctor"
            )
        return json.loads(line)

    def stop(self) -> None:
        """Ends it, whatever it waits for: what was found so far is in the output then.

        A word is needed: workers of a loader that failed hold our end of its stdin open.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.tell({"interrupted": True})
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def _arguments(options: dict[str, Any], settings: dict[str, Any] | None) -> dict[str, Any]:
    if settings is None:
        return options
    wanted = {name: value for name, value in settings.items() if name not in _NOT_THEIRS}
    return loader_settings.arguments(options, wanted)


def _on_accelerator(torch: Any) -> bool:
    return hasattr(torch, "accelerator") and bool(torch.accelerator.is_available())


def tune(
    dataset: Any,
    options: dict[str, Any],
    *,
    step: Callable[[Any], Any] | None,
    steps: int,
    seconds: float,
    max_trials: int,
    progress: bool,
    output: str | None,
    exhaustive: bool = False,
) -> dict[str, Any]:
    torch: Any = importlib.import_module("torch")
    data: Any = importlib.import_module("torch.utils.data")
    own = data.DataLoader(dataset, **options)
    facts = loader_settings.describe(own) | {"batch_wise": False, "threaded": False}
    search = _Search(
        {
            "pid": os.getpid(),
            "loader": facts,
            "accelerator": _on_accelerator(torch),
            "steps": steps,
            "max_trials": max_trials,
            "exhaustive": exhaustive,
            "progress": progress,
            "output": os.path.abspath(output) if output is not None else None,
        }
    )

    def run(asked: dict[str, Any]) -> dict[str, Any]:
        settings = asked["settings"]
        trial, failed, begin = Trial(asked, seconds), None, time.perf_counter()
        loader = None
        try:
            with _same_random_state(torch, options), warnings.catch_warnings():
                # More of them than cores are tried where they wait.
                warnings.filterwarnings("ignore", message="This DataLoader will create")
                loader = data.DataLoader(dataset, **_arguments(copy.copy(options), settings))
                trial.run(loader, step)
        except Exception as error:
            if settings is None:
                raise
            gc.collect()  # the exception's frames held workers, which must not be forked along
            words = str(error).strip().splitlines()  # of a worker's, the last line says what it was
            failed = words[-1][:200] if words else type(error).__name__
        finally:
            if loader is not None:  # kept workers end now, also where a traceback holds the loader
                loader._iterator = None
        return trial.told(time.perf_counter() - begin, failed)

    try:
        with _not_recorded():
            while "best" not in (asked := search.asked()):
                search.tell(run(asked))
    finally:
        search.stop()  # ^C: what was found so far is written
    best = _arguments(copy.copy(options), asked["best"])
    names = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
    found = {name: getattr(own, name) for name in names}
    changed = {name: value for name, value in best.items() if options.get(name) != value}
    if asked["best"] is not None:
        found |= {name: best[name] for name in names if name in best} | changed
    return found


def tune_loader(
    dataset: Any,
    /,
    *,
    step: Callable[[Any], Any] | None = None,
    steps: int = 60,
    seconds: float = 30.0,
    max_trials: int = 40,
    progress: bool = False,
    output: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The fastest DataLoader settings for a dataset, found by trying them in this process.

        best = tune_loader(dataset, step=train_step, batch_size=64, shuffle=True)
        loader = DataLoader(dataset, **{"batch_size": 64, "shuffle": True, **best})

    `options` are arguments of `torch.utils.data.DataLoader`, as you have them: the settings that
    are compared with, and win ties. `step(batch)` is what your loop does with a batch, of whatever
    shape the loader makes it; it is called for every batch of every trial, so give it a model that
    may be trained further, and let it wait for an accelerator (`loss.item()`). None: only fetching
    counts, and the fastest fetching is best.

    A trial has `steps` batches after its warm-up, or takes `seconds` (s). There are at most
    `max_trials`. `progress`: a bar on stderr. `output`: a file for the JSON object that
    `stepscope tune loader --json` prints.

    Returns a dict of arguments for DataLoader: num_workers, prefetch_factor (batches a worker; None
    without workers), persistent_workers, pin_memory, and whatever else must change with them. Which
    samples come, and in which order, they do not change. Random states (torch's on the CPU,
    Python's, NumPy's, the loader's generator) are as before.

    Raises what the dataset or `step` raise with your own options; ValueError when an epoch has no
    batch, or `steps` < 8, `seconds` <= 0 or `max_trials` < 1; OSError when the stepscope command
    cannot be run. ^C is KeyboardInterrupt; `output` then has the best so far.
    """
    if steps < _LEAST_STEPS or seconds <= 0 or max_trials < 1:
        raise ValueError(
            f"tune_loader: steps must be {_LEAST_STEPS} or more, seconds above 0, max_trials "
            f"1 or more, not {steps}, {seconds}, {max_trials}"
        )
    return tune(
        dataset,
        options,
        step=step,
        steps=steps,
        seconds=seconds,
        max_trials=max_trials,
        progress=progress,
        output=output,
    )
