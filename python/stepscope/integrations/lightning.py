"""PyTorch Lightning: `Trainer(..., callbacks=[StepscopeCallback()])`.

Under `stepscope run` the trainer is observed without it; what it adds there is step phases and the
verdict in the trainer's loggers. Without, it starts Stepscope, as `stepscope.start()` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import stepscope
from stepscope.integrations import _metrics

if TYPE_CHECKING:

    class _Callback: ...
else:
    for _name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            _Callback = importlib.import_module(_name).Callback
            break
        except ImportError as _error:
            _failed = _error
    else:
        raise ImportError(
            f"lightning could not be imported ({_failed})\nhint: pip install 'stepscope[lightning]'"
        ) from _failed


class StepscopeCallback(_Callback):
    """Logs `stepscope/step_ms`, `stepscope/input_ms`, ... (milliseconds of the mean steady step so
    far) to each of the trainer's loggers every `log_every_n_steps`, and the verdict when it
    changes. On the main process only, and at most _ask.WITHIN_S for each log. Never raises.
    """

    def __init__(self) -> None:
        stepscope.start(live=False)
        self._step = -1
        self._verdict = ""

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        step = getattr(trainer, "global_step", -1)
        every = getattr(trainer, "log_every_n_steps", 0)
        if every > 0 and step % every == 0 and step != self._step:  # a micro-step makes no step
            self._step = step
            self._log(trainer, step)

    def on_train_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        self._log(trainer, getattr(trainer, "global_step", -1), at_end=True)

    def _log(self, trainer: Any, step: int, *, at_end: bool = False) -> None:
        try:
            if not trainer.is_global_zero or not trainer.loggers:
                return
            with _metrics.logging_phase():
                summary = _metrics.now(at_end=at_end)
                values = _metrics.numbers(summary) if summary is not None else {}
                if summary is None or not values:
                    return
                verdict = _metrics.verdict(summary)
                for logger in trainer.loggers:
                    logger.log_metrics(values, step=step)
                    if verdict != self._verdict:
                        _tell(logger, verdict, step)
                self._verdict = verdict
        except Exception as error:  # of a version that we do not know: training goes on
            _metrics.warn_once(
                f"Lightning's loggers got no phases ({type(error).__name__}: {error})"
            )


def _tell(logger: Any, verdict: str, step: int) -> None:
    """A line of text, where the logger has a place for one."""
    name = _metrics.PREFIX + "verdict"
    experiment: Any = getattr(logger, "experiment", None)
    if hasattr(experiment, "add_text"):  # TensorBoard
        experiment.add_text(name, verdict, step)
    elif hasattr(experiment, "summary") and hasattr(experiment, "log"):  # W&B
        experiment.summary[name] = verdict
