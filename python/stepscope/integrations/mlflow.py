"""MLflow: step phases, verdict and card into the run that is active.

from stepscope.integrations import mlflow as stepscope_mlflow
stepscope_mlflow.log(step)                             # now and then, while it trains
stepscope_mlflow.log_run("train-20261129-181827")      # afterwards: series and summary
"""

from __future__ import annotations

import os
import time
from typing import Any

import stepscope
from stepscope.integrations import _metrics

try:
    import mlflow
    from mlflow.entities import Metric
except ImportError as error:
    raise ImportError(
        f"mlflow could not be imported ({error})\nhint: pip install mlflow-skinny"
    ) from error

_BATCH = 1000  # metrics that a tracking server takes at once


def log(step: int, *, run_id: str | None = None) -> bool:
    """The means of the steady steps so far as metrics `stepscope/step_ms`, `stepscope/input_ms`,
    ... (milliseconds), and the verdict as a tag. run_id: None is the active run, one is begun where
    there is none. False: no run of ours, no steady step yet, or no answer in 10 ms.
    """
    flow: Any = mlflow
    with _metrics.logging_phase():
        summary = _metrics.now()
        values = _metrics.numbers(summary) if summary is not None else {}
        if summary is None or not values:
            return False
        flow.log_metrics(values, step=step, run_id=run_id)
        where = run_id or flow.active_run().info.run_id
        flow.MlflowClient().set_tag(where, "stepscope.verdict", _metrics.verdict(summary))
    return True


def log_run(run: stepscope.Run | str | os.PathLike[str], *, run_id: str | None = None) -> None:
    """A run that is over, or so far: `stepscope/series/step_ms`, ... of each step that is still
    kept, the means as metrics, the verdict as a tag, summary.json and the card as artifacts.
    run: as for
    stepscope.load, which says what is raised.
    """
    flow: Any = mlflow
    found = _metrics.loaded(run)
    where = run_id or (flow.active_run() or flow.start_run()).info.run_id
    client = flow.MlflowClient()
    at_ms = int(time.time() * 1000)
    batch = [
        Metric(name, value, at_ms, step)
        for step, values in _metrics.series(found)
        for name, value in values.items()
    ]
    if found.summary is not None:
        batch += [Metric(k, v, at_ms, 0) for k, v in _metrics.numbers(found.summary).items()]
        client.set_tag(where, "stepscope.verdict", _metrics.verdict(found.summary))
        client.log_dict(where, found.summary, "stepscope/summary.json")
        client.log_text(where, _metrics.card(found), "stepscope/card.txt")
    for first in range(0, len(batch), _BATCH):
        client.log_batch(where, metrics=batch[first : first + _BATCH])
