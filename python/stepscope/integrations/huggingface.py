"""Hugging Face Trainer: `Trainer(..., callbacks=[StepscopeCallback()])`.

Under `stepscope run` the trainer is observed without it; what it adds there is step phases and the
verdict in the trainer's own logs. Without, it starts Stepscope, as `stepscope.start()` does.
"""

from __future__ import annotations

import functools
from typing import Any

import stepscope
from stepscope.integrations import _metrics

try:
    import transformers
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise ImportError(
        f"transformers could not be imported ({error})\nhint: pip install 'stepscope[huggingface]'"
    ) from error


class StepscopeCallback(TrainerCallback):
    """Adds `stepscope/step_ms`, `stepscope/input_ms`, ... (milliseconds of the mean steady step so
    far) to what the trainer logs beside `loss`, and `stepscope/verdict` whenever it changes. On the
    main process only, and at most _ask.WITHIN_S for each log. Never raises.
    """

    def __init__(self) -> None:
        stepscope.start(live=False)
        self._verdict = ""
        _watch_log()

    def add_to(self, logs: dict[str, Any]) -> None:
        summary = _metrics.now(at_end="train_runtime" in logs)
        values = _metrics.numbers(summary) if summary is not None else {}
        if summary is None or not values:
            return
        logs.update(values)
        verdict = _metrics.verdict(summary)
        if verdict != self._verdict:
            self._verdict = verdict
            logs[_metrics.PREFIX + "verdict"] = verdict


_watching = False


def _watch_log() -> None:
    """Trainer.log and not on_log: the callbacks that report stand before ours."""
    global _watching
    trainer: Any = Trainer
    original = getattr(trainer, "log", None)
    if _watching or not callable(original):
        if not _watching:
            _metrics.warn_once(
                f"transformers {transformers.__version__} has no Trainer.log: observed, but "
                "without phases in its logs"
            )
        return
    _watching = True

    @functools.wraps(original)
    def log(self: Any, logs: Any, *args: Any, **kwargs: Any) -> Any:
        _add(self, logs)
        return original(self, logs, *args, **kwargs)

    trainer.log = log


def _add(trainer: Any, logs: Any) -> None:
    try:
        if not ("loss" in logs or "train_runtime" in logs) or not trainer.is_world_process_zero():
            return
        for callback in trainer.callback_handler.callbacks:
            if isinstance(callback, StepscopeCallback):
                with _metrics.logging_phase():
                    callback.add_to(logs)
                return
    except Exception as error:  # of a version that we do not know: its own logs go on
        _metrics.warn_once(
            f"transformers {transformers.__version__}: no phases in its logs "
            f"({type(error).__name__}: {error})"
        )
