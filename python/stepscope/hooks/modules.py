"""forward and validation: which modules are roots, their slot, and train() and eval() of a root."""

from __future__ import annotations

import functools
import weakref
from types import ModuleType
from typing import Any

from stepscope import _native
from stepscope.hooks import device, distributed, tensors

_known: set[int] = set()  # ids of modules whose end the native table will be told of
_roots: set[int] = set()


def install(module: ModuleType) -> None:
    module_type: Any = module.Module
    module_type.train = _watched_train(module_type.train)
    _native.set_module_type(module_type)


def classify(module: Any) -> bool:
    """Called once for each outermost module that is called: is it a root, that is, has it trainable
    parameters?
    """
    with tensors.quietly():
        _watch(module)
        root = not _is_engine(module) and any(p.requires_grad for p in module.parameters())
        if root and id(module) not in _roots:
            _add_root(module)
            _native.set_fact(_native.FACT_ROOT_MODULE)
            device.saw_root(module)
            distributed.saw_root(module)
        return root


def _is_engine(module: Any) -> bool:
    """DeepSpeed's, a module whose eval() and train() are those of the module that it calls: that is
    the root.
    """
    return any(base.__name__ == "DeepSpeedEngine" for base in type(module).__mro__)


def forget_roots() -> None:
    """A new segment: what was said of the roots in the last one is to be said again."""
    _roots.clear()


def _add_root(module: Any) -> None:
    """The root and what it wraps (DDP's module, compile's _orig_mod): eval() comes on either."""
    while module is not None:
        _watch(module)
        _roots.add(id(module))
        wrapped = getattr(module, "_orig_mod", None)
        module = wrapped if wrapped is not None else _wrapped_by_data_parallel(module)


def _wrapped_by_data_parallel(module: Any) -> Any:
    return module.module if type(module).__name__.endswith("DataParallel") else None


def _watch(module: Any) -> None:
    """Forget its id when it is gone: the next module may get it."""
    key = id(module)
    if key not in _known:
        _known.add(key)
        # Not a plain weak reference: at the interpreter's end its callback would find no globals.
        weakref.finalize(module, _freed, key).atexit = False


def _freed(key: int) -> None:
    _known.discard(key)
    _roots.discard(key)
    _native.module_freed(key)


def _watched_train(original: Any) -> Any:
    from torch.compiler import is_compiling

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        if not is_compiling() and id(self) in _roots:
            if mode:
                _native.train_called()
            else:
                _native.eval_called()
        return original(self, mode)

    return train
