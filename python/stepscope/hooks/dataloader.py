"""input: the consumer side of torch.utils.data.DataLoader, whatever wraps it."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from types import ModuleType
from typing import Any

from stepscope import _native
from stepscope.hooks import loading

_numbers = itertools.count(1)
_number_of: dict[int, tuple[Any, int]] = {}  # id(loader) -> (weak reference, number)


def loader_number(loader: object) -> int:
    """A number for this loader: the same while it lives, never used for another."""
    key = id(loader)
    known = _number_of.get(key)
    if known is not None and known[0]() is loader:
        return known[1]
    number = next(_numbers)

    def forget(_: object, tables: Any = (_number_of, _order_of, _order_now)) -> None:
        for table, name in zip(tables, (key, number, number), strict=True):
            table.pop(name, None)  # at the interpreter's end globals may be None already

    _number_of[key] = (weakref.ref(loader, forget), number)
    return number


# loader number -> (sampler's seed, its epoch): of its last whole epoch, and of the one in progress
_order_of: dict[int, Any] = {}
_order_now: dict[int, Any] = {}


def epoch_begins(loader: Any) -> int:
    """The loader's number. Looks whether a shuffling DistributedSampler was told of the epoch."""
    number = loader_number(loader)
    with contextlib.suppress(Exception):  # of a loader unlike torch's; the number counts
        loading.epoch_begins(loader)
    sampler = getattr(loader, "sampler", None)
    if hasattr(sampler, "set_epoch") and getattr(sampler, "shuffle", False):
        order = (getattr(sampler, "seed", None), getattr(sampler, "epoch", None))
        _order_now[number] = order
        if getattr(sampler, "num_replicas", 1) > 1 and _order_of.get(number) == order:
            _native.set_fact(_native.FACT_SAME_ORDER)
    return number


def epoch_ended(number: int) -> None:
    """The loader gave its last batch: what was only peeked at does not count as an epoch."""
    loading.epoch_ended()
    if number in _order_now:
        _order_of[number] = _order_now[number]


def install(module: ModuleType) -> None:
    iterator: Any = module._BaseDataLoaderIter
    loader: Any = module.DataLoader
    hook = _native.Hook
    iterator.__init__ = _native.timed_call(iterator.__init__, hook.ITER_INIT)
    iterator.__next__ = _native.timed_call(iterator.__next__, hook.FETCH)
    loader.__iter__ = _native.timed_call(loader.__iter__, hook.ITER)
    loading.install(module)
