"""What frameworks do around a step: callbacks and logging are rows of their own, what they evaluate
and save is validation and checkpoint.

The names are the frameworks' own, some of them private. One that is not there any more costs its
row and one warning a framework: the hooks of a plain loop go on without it.
"""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import Any

from stepscope import _native

_LIGHTNING: dict[str, dict[str, str]] = {
    "pytorch.trainer.call": {"_call_callback_hooks": "callbacks"},
    "pytorch.trainer.connectors.logger_connector.logger_connector": {
        "_LoggerConnector.log_metrics": "logging",
    },
    "pytorch.trainer.trainer": {"Trainer.save_checkpoint": "checkpoint"},
    "pytorch.loops.evaluation_loop": {"_EvaluationLoop.run": "validation"},
    "fabric.fabric": {
        "Fabric.call": "callbacks",
        "Fabric.log_dict": "logging",
        "Fabric.save": "checkpoint",
    },
}

# module -> what is called there -> the phase that it is
CALLS: dict[str, dict[str, str]] = {
    "transformers.trainer_callback": {"CallbackHandler.call_event": "callbacks"},
    "transformers.trainer": {
        "Trainer.log": "logging",
        "Trainer.evaluate": "validation",
        "Trainer.predict": "validation",
        "Trainer.save_model": "checkpoint",
        "Trainer._save_checkpoint": "checkpoint",
    },
    "accelerate.accelerator": {
        "Accelerator.log": "logging",
        "Accelerator.save_model": "checkpoint",
        "Accelerator.save_state": "checkpoint",
    },
    "deepspeed.runtime.engine": {
        "DeepSpeedEngine.save_checkpoint": "checkpoint",
        "DeepSpeedEngine.save_16bit_model": "checkpoint",
    },
    **{f"lightning.{name}": calls for name, calls in _LIGHTNING.items()},
    # the same as packages of their own
    **{
        f"pytorch_lightning.{name.removeprefix('pytorch.')}": calls
        for name, calls in _LIGHTNING.items()
        if name.startswith("pytorch.")
    },
    "lightning_fabric.fabric": _LIGHTNING["fabric.fabric"],
}

_warned: set[str] = set()


def install(module: ModuleType) -> None:
    for path, phase in CALLS[module.__name__].items():
        *owners, name = path.split(".")
        owner: Any = module
        for part in owners:
            owner = getattr(owner, part, None)
        original = getattr(owner, name, None)
        if callable(original):
            setattr(owner, name, _native.named_call(original, phase))
        else:
            missing(module.__name__, path)


def missing(module: str, what: str) -> None:
    """Say once a framework that it is not as we know it."""
    framework = module.partition(".")[0]
    if framework in _warned:
        return
    _warned.add(framework)
    version = getattr(sys.modules.get(framework), "__version__", "of an unknown version")
    logging.getLogger("stepscope").warning(
        "stepscope: %s %s has no %s.%s: measured as a plain loop, without a row for what the "
        "framework itself does",
        framework,
        version,
        module,
        what,
    )
