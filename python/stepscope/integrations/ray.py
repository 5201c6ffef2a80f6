"""Ray Train: its workers as ranks of one run.

    trainer = TorchTrainer(observe(train_loop, folder="~/runs"), scaling_config=...)

Ray itself is not imported: what is wrapped is the function that it runs in each worker.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stepscope
from stepscope import _runless


def observe(
    train_loop: Callable[..., Any],
    *,
    folder: str | None = None,
    hub: str | None = None,
    token_file: str | None = None,
    pin: str | None = None,
    run_id: str | None = None,
) -> Callable[..., Any]:
    """`train_loop` as it is, with Stepscope started in the worker before it and ended after it.

    The workers of a node are one run. folder: where its `stepscope-runs` goes on each node (Ray's
    workers stand in a temporary folder of the session); None: there. hub, token_file, pin: join the
    nodes at a hub, as `stepscope run --hub` does (docs/hub.md); then run_id is needed and must be
    this training's own. Raises ValueError for a hub without token_file or run_id.
    """
    if hub is not None and (token_file is None or run_id is None):
        raise ValueError("hub needs token_file and run_id, the same on every node")
    options = _runless.Options(
        folder=str(Path(folder).expanduser().absolute()) if folder is not None else None,
        run_id=run_id,
        name=getattr(train_loop, "__name__", "ray"),
    )

    @functools.wraps(train_loop)
    def observed(*args: Any, **kwargs: Any) -> Any:
        token = Path(token_file).expanduser() if token_file is not None else None  # of this node
        flags = (("--hub", hub), ("--token-file", token), ("--pin", pin))
        words = tuple(str(word) for flag in flags if hub and flag[1] for word in flag)
        _runless.use(dataclasses.replace(options, hub=words))
        stepscope.start(live=False)
        try:
            return train_loop(*args, **kwargs)
        finally:
            stepscope.stop()

    return observed
