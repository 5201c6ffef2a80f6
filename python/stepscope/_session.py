"""This process's place in the run: its segment, its rank, and without `stepscope run` its agent."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from stepscope import _native
from stepscope._after_import import after_import, settle

_note: Callable[[str], None] | None = None
_segments: str | None = None  # where this process, or the one it was forked from, records
_run_folder: str | None = None  # of the run, when no `stepscope run` began it
_shows_card = False  # the local rank that does


def set_note(note: Callable[[str], None]) -> None:
    global _note
    _note = note


def not_measured(reason: str) -> None:
    """Say once what will be missing: to the card under `stepscope run`, else on stderr."""
    text = reason.replace("\n", " ").replace("|", "/")
    if _note is not None:
        _note(text)
    else:
        print(f"stepscope: {text}", file=sys.stderr)


def nested_step() -> None:
    """A trace_step block was entered inside another; called once a process."""
    logging.getLogger("stepscope").warning(
        "stepscope: a trace_step block inside another is ignored: the outer block is the step"
    )


def start_without_run() -> None:
    """The first trace_step of a process that `stepscope run` did not start: hooks go in, an agent
    comes up.
    """
    if os.environ.get("STEPSCOPE") == "0":
        _native.switch_off()
        return
    after_import("torch", _install_hooks)  # its parts are there before it is whole


def _install_hooks(_: object) -> None:
    from stepscope import _install

    _install.install()


def start(*, live: bool | None = None) -> None:
    """Observe this process from now on, as `stepscope run` would: automatic steps, no edit of the
    loop. Under `stepscope run`, or started already, nothing changes.

    In a notebook the cell that trains shows the verdict and the phases while it runs. live: False
    never, True wherever IPython runs, None in notebooks. After stop() a new run begins. Never
    raises.
    """
    start_without_run()
    if os.environ.get("STEPSCOPE") == "0":
        return
    if _native.reopen():
        modules: Any = sys.modules.get("stepscope.hooks.modules")
        if modules is not None:
            modules.forget_roots()
    _native.resume()
    if live is not False and "IPython" in sys.modules:
        from stepscope import _notebook

        _notebook.show(always=live is True)


def stop() -> None:
    """End the run that start() or trace_step began, wait at most 2 s for its card and print it:
    into the cell in a notebook, else to stderr. The next start() begins another run. Under
    `stepscope run` recording pauses: the run and its card end with the process. Never raises.
    """
    global _segments, _run_folder
    if os.environ.get("STEPSCOPE") == "0":
        return
    if os.environ.get("STEPSCOPE_SEGMENTS"):
        _native.pause()
        return
    notebook: Any = sys.modules.get("stepscope._notebook")
    if notebook is not None:
        notebook.hide()
    if _run_folder is None:
        _native.switch_off()
        return
    from stepscope import _runless

    _native.close_segment()
    atexit.unregister(_runless.print_card)
    atexit.unregister(_native.close_segment)
    folder, _run_folder, _segments = _run_folder, None, None
    if _shows_card and (notebook is None or not notebook.show_card(folder)):
        _runless.print_card(folder)


def segment_folder() -> str | None:
    """Where the agent of this run answers; None while nothing is recorded."""
    return _segments


def open_segment() -> bool:
    """Make this process's segment, at the first training event. False: record nothing here."""
    global _segments, _run_folder, _shows_card
    settle()
    if os.environ.get("STEPSCOPE") == "0" or not sys.platform.startswith("linux") or _is_worker():
        return False
    try:
        folder = os.environ.get("STEPSCOPE_SEGMENTS", "")
        run_folder = None
        if not folder:
            from stepscope import _runless

            folder, run_folder = _runless.start_agent(_launch_ranks())
        _native.open_segment(**_options(folder, _number("STEPSCOPE_SEGMENT_KB", 256)))
        local_rank = _ranks()[1]
    except (OSError, RuntimeError, ValueError) as error:
        not_measured(f"not recording: {error}")
        return False
    _native.watch_all_classes()
    _segments, _run_folder, _shows_card = folder, run_folder, local_rank <= 0
    if run_folder is not None and _shows_card:
        from stepscope import _runless

        atexit.register(_runless.print_card, run_folder)
    atexit.register(_native.close_segment)  # registered last, so it runs first
    return True


def open_loading() -> None:
    """Make the segment that this process's loading is recorded in. Without room it is not, and all
    else goes on.
    """
    folder = os.environ.get("STEPSCOPE_SEGMENTS", "") or _segments
    if not folder or os.environ.get("STEPSCOPE") == "0":
        return
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        _native.open_loading(**_options(folder, _number("STEPSCOPE_WORKER_SEGMENT_KB", 64)))


def _options(folder: str, kilobytes: int) -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    rank, local_rank, world_size, local_world_size = _ranks()
    return {
        "folder": folder,
        "segment_bytes": kilobytes * 1024,
        "shm_share": float(os.environ.get("STEPSCOPE_SHM_SHARE", "0.05")),
        "rank": rank,
        "local_rank": local_rank,
        "world_size": world_size,
        "local_world_size": local_world_size,
        "node_rank": _number("GROUP_RANK", -1),
        "attempt": _number("TORCHELASTIC_RESTART_COUNT", 0),
        "run_id": os.environ.get("STEPSCOPE_RUN_ID", ""),
        "python_version": "{}.{}.{}".format(*sys.version_info[:3]),
        "torch_version": str(torch.__version__),
        "executable": sys.executable or "",
    }


def tell_ranks() -> int:
    """Write the ranks into the segment again, now that torch.distributed may have started. Returns
    the world size.
    """
    ranks = _ranks()
    _native.set_ranks(*ranks)
    return ranks[2]


def _is_worker() -> bool:
    worker: Any = sys.modules.get("torch.utils.data._utils.worker")
    return worker is not None and worker.get_worker_info() is not None


def _number(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default


def _launch_ranks() -> tuple[int, int, int, int]:
    """rank, local rank, world size, ranks on this node: as the launcher says, else -1."""
    environment = os.environ
    if "RANK" in environment:
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    elif _number("SLURM_NTASKS", 1) > 1:
        names = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE")
    else:
        names = (
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
        )
    rank, local_rank, world_size, local_world_size = (
        _number(name, default) for name, default in zip(names, (-1, -1, 1, -1), strict=True)
    )
    return rank, local_rank, world_size, local_world_size


def _ranks() -> tuple[int, int, int, int]:
    rank, local_rank, world_size, local_world_size = _launch_ranks()
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank, world_size = distributed.get_rank(), distributed.get_world_size()
    return rank, local_rank, world_size, local_world_size
