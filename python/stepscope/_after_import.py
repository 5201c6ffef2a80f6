"""Calls a function once a module has been imported: at once if it is, else right after its import.

A finder at the head of sys.meta_path that answers None for every name but the wanted ones, and
wraps their loaders for the length of one exec_module. A wanted module keeps its spec and loader.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_wanted: dict[str, list[Callable[[ModuleType], None]]] = {}


# modules that import torch in the middle of themselves, when our hooks come
_halfway: list[tuple[ModuleType, Callable[[ModuleType], None]]] = []


def settle() -> None:
    """Something trains: what was being imported is there by now."""
    while _halfway:
        module, callback = _halfway.pop()
        _call(callback, module)


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _wanted:
            return None
        callbacks = _wanted.pop(name)
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec, spec.loader, callbacks)  # pyright: ignore
                return spec
        _wanted[name] = callbacks  # not there yet: a later try may find it
        return None


class _Loader:
    def __init__(
        self, spec: ModuleSpec, loader: Any, callbacks: list[Callable[[ModuleType], None]]
    ) -> None:
        self._spec, self._loader, self._callbacks = spec, loader, callbacks

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for callback in self._callbacks:
            _call(callback, module)


def _call(callback: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        callback(module)
    except Exception as error:
        from stepscope import _session

        _session.not_measured(f"hook on {module.__name__}: {type(error).__name__}: {error}")


def after_import(name: str, callback: Callable[[ModuleType], None]) -> None:
    """Call `callback(module)` when `name` is imported, at once if it already is; in the middle of
    its import, at settle().
    """
    module = sys.modules.get(name)
    if module is not None and getattr(module.__spec__, "_initializing", False):
        _halfway.append((module, callback))
        return
    if module is not None:
        _call(callback, module)
        return
    _wanted.setdefault(name, []).append(callback)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # pyright: ignore
