"""TensorBoard: step phases, verdict and card into the writer that you have.

from stepscope.integrations import tensorboard
tensorboard.log(writer, step)                        # now and then, while it trains
tensorboard.log_run(writer, "train-20261129-181827")  # afterwards: series and summary
"""

from __future__ import annotations

import os
from typing import Any

import stepscope
from stepscope.integrations import _metrics


def log(writer: Any, step: int) -> bool:
    """The means of the steady steps so far, as scalars `stepscope/step_ms`, `stepscope/input_ms`,
    ... (milliseconds), and the verdict as text. writer: a torch.utils.tensorboard.SummaryWriter, or
    anything with add_scalar and add_text. False: no run, no steady step yet, or no answer in 10 ms.
    """
    with _metrics.logging_phase():
        summary = _metrics.now()
        values = _metrics.numbers(summary) if summary is not None else {}
        if summary is None or not values:
            return False
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.add_text(_metrics.PREFIX + "verdict", _metrics.verdict(summary), step)
    return True


def log_run(writer: Any, run: stepscope.Run | str | os.PathLike[str]) -> None:
    """A run that is over, or so far: `stepscope/series/step_ms`, `.../input_ms`, ... of each step
    that is still kept, and verdict and card as text. run: as for stepscope.load, which says what is
    raised.
    """
    found = _metrics.loaded(run)
    for step, values in _metrics.series(found):
        for name, value in values.items():
            writer.add_scalar(name, value, step)
    if found.summary is not None:
        writer.add_text(_metrics.PREFIX + "verdict", _metrics.verdict(found.summary))
        writer.add_text(_metrics.PREFIX + "card", f"```\n{_metrics.card(found)}\n```")
