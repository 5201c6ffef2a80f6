"""Weights & Biases: step phases, verdict and card into the run that you have.

from stepscope.integrations import wandb as stepscope_wandb
stepscope_wandb.log(run)                             # now and then, while it trains
stepscope_wandb.log_run(run, "train-20261129-181827")  # afterwards: series and summary
"""

from __future__ import annotations

import os
from typing import Any

import stepscope
from stepscope.integrations import _metrics


def log(wandb_run: Any, **options: Any) -> bool:
    """The means of the steady steps so far as `stepscope/step_ms`, `stepscope/input_ms`, ...
    (milliseconds), and the verdict in the run's summary. wandb_run: what wandb.init() gave.
    options: for its log(), such as `commit=False` to go with your next one. False: no run of
    ours, no steady
    step yet, or no answer in 10 ms.
    """
    with _metrics.logging_phase():
        summary = _metrics.now()
        values = _metrics.numbers(summary) if summary is not None else {}
        if summary is None or not values:
            return False
        wandb_run.log(values, **options)
        wandb_run.summary[_metrics.PREFIX + "verdict"] = _metrics.verdict(summary)
    return True


def log_run(wandb_run: Any, run: stepscope.Run | str | os.PathLike[str]) -> None:
    """A run that is over, or so far: series over `stepscope/step` of each step that is still kept,
    and the means, the verdict and the card in the run's summary. run: as for stepscope.load, which
    says what is raised.
    """
    found = _metrics.loaded(run)
    axis = _metrics.PREFIX + "step"
    wandb_run.define_metric(axis)
    wandb_run.define_metric(_metrics.PREFIX + "series/*", step_metric=axis)
    for step, values in _metrics.series(found):
        wandb_run.log({axis: step, **values})
    if found.summary is not None:
        wandb_run.summary.update(
            {
                **_metrics.numbers(found.summary),
                _metrics.PREFIX + "verdict": _metrics.verdict(found.summary),
                _metrics.PREFIX + "card": _metrics.card(found),
            }
        )
