"""checkpoint: torch.save however it was imported, distributed checkpoints, safetensors files."""

from __future__ import annotations

from types import ModuleType

from stepscope import _native


def _time(module: ModuleType, name: str) -> None:
    original = getattr(module, name, None)
    if original is not None:
        timed = _native.timed_call(original, _native.Hook.SPAN, _native.PHASE_CHECKPOINT)
        setattr(module, name, timed)


def install(module: ModuleType) -> None:
    _time(module, "_save")
    _time(module, "_legacy_save")


def install_distributed(module: ModuleType) -> None:
    _time(module, "_save_state_dict")
    _time(module, "async_save")


def install_safetensors(module: ModuleType) -> None:
    _time(module, "save_file")
