"""Frameworks that are not as we know them: one warning, no exception, the plain loop's hooks."""

from __future__ import annotations

import logging
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.fast


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.hooks import frameworks

    monkeypatch.setattr(frameworks, "_warned", set())


def module(name: str, **members: object) -> ModuleType:
    made = ModuleType(name)
    for key, value in members.items():
        setattr(made, key, value)
    return made


def test_one_warning_a_framework(fresh: None, caplog: pytest.LogCaptureFixture) -> None:
    from stepscope.hooks import frameworks, lightning

    kept = SimpleNamespace(evaluate=lambda: "evaluated")
    with caplog.at_level(logging.WARNING, logger="stepscope"):
        frameworks.install(module("transformers.trainer", Trainer=kept))
        frameworks.install(module("transformers.trainer_callback"))
        frameworks.install(module("lightning.pytorch.trainer.call"))
        lightning.install(module("lightning.pytorch.strategies.strategy"))
    assert len(caplog.records) == 2
    assert "transformers" in caplog.text
    assert "measured as a plain loop" in caplog.text
    assert kept.evaluate() == "evaluated"  # what is there is still timed, and is what it was


def test_what_is_called_keeps_its_result_exception_and_name(fresh: None) -> None:
    from stepscope.hooks import frameworks

    class Trainer:
        def log(self, logs: object) -> object:
            "Its own words."
            if logs is None:
                raise KeyError("x")
            return logs

    made = module("transformers.trainer", Trainer=Trainer)
    for name in ("evaluate", "predict", "save_model", "_save_checkpoint"):
        setattr(Trainer, name, lambda self: name)  # noqa: B023
    frameworks.install(made)
    trainer = Trainer()
    assert trainer.log(3) == 3
    assert Trainer.log.__doc__ == "Its own words."
    assert Trainer.log.__name__ == "log"
    with pytest.raises(KeyError):
        trainer.log(None)
