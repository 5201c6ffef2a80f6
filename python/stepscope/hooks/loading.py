"""Inside the loading of data: DataLoader workers, and a training process that loads itself.

What runs for each sample or batch is C (stepscope._native, loader_hooks.cpp); Python here runs once
a process or an epoch. Nothing of the user's is called, and no attribute of theirs changes in the
training process. In a worker, which has copies of its own, plain functions in a list of transforms
are replaced by objects that time them and else are them.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from stepscope import _native, _session
from stepscope._after_import import after_import

_MOST_LOADERS = 15  # of one process at a time; others are not looked into
_EPOCH_NAMES = ("epoch", "current_epoch", "cur_epoch")
_MOST_OBJECTS, _MOST_ITEMS, _MOST_DEPTH = 400, 64, 6  # of a dataset, looked at for transforms

# A loader made anew each epoch with the same set-up has the number of the one before, if that is
# gone. number -> (set-up, weak reference)
_numbers: dict[int, tuple[Any, Any]] = {}
_making = 0  # the loader whose fetcher comes next in this process
_opened = False  # tried to, in this process
_is_worker = False
_ITERABLE = 1  # torch.utils.data.dataloader._DatasetKind.Iterable


def forget() -> None:
    """In a forked child."""
    global _making, _opened, _is_worker
    _making = 0
    _opened = _is_worker = False


def _number(loader: Any) -> int:
    setup: Any = (
        type(loader.dataset),
        type(loader.sampler),
        loader.batch_size,
        loader.num_workers,
        loader.drop_last,
    )
    gone = 0
    for number, (known, reference) in _numbers.items():
        if reference() is loader:
            return number
        if gone == 0 and known == setup and reference() is None:
            gone = number
    number = gone or (len(_numbers) + 1 if len(_numbers) < _MOST_LOADERS else 0)
    if number:
        _numbers[number] = (setup, weakref.ref(loader))
    return number


def _open() -> bool:
    global _opened
    if not _opened:
        _opened = True
        _session.open_loading()
    return _native.loading_is_open()


def epoch_begins(loader: Any) -> None:
    """An iteration of the loader begins, in the training process."""
    global _making
    _making = 0
    if _is_worker or not _open():
        return
    number = _number(loader)
    if not number:
        return
    context = loader.multiprocessing_context
    flags = 0
    for flag, holds in (
        (_native.LOADER_PERSISTENT, loader.persistent_workers),
        (_native.LOADER_PINNED, loader.pin_memory and _accelerated()),
        (_native.LOADER_ITERABLE, loader._dataset_kind == _ITERABLE),
        (_native.LOADER_OWN_EPOCH, keeps_epoch(loader.dataset)),
        (_native.LOADER_ANY_ORDER, not getattr(loader, "in_order", True)),
        (_native.LOADER_SPAWNED, loader.num_workers > 0 and _start_method(context) != "fork"),
        (_native.LOADER_HANDLES, any(map(_holds_handles, datasets(loader.dataset)))),
        (_native.LOADER_SPLITS, _splits(loader)),
    ):
        flags |= flag if holds else 0
    _native.tell_loader(
        number=number,
        flags=flags,
        workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor or 0,
        batch_size=loader.batch_size or 0,
        dataset=type(loader.dataset).__name__,
    )
    _native.tell_epoch(number)
    if loader.num_workers == 0:
        _making = number


def epoch_ended() -> None:
    """In the training process: what was made and not written yet."""
    _native.flush_loading()


def _accelerated() -> bool:
    torch: Any = sys.modules["torch"]
    return bool(torch.accelerator.is_available())


def _start_method(context: Any) -> str:
    if context is None:
        context = sys.modules["torch"].multiprocessing
    return context.get_start_method(allow_none=True) or "fork"


def _workers_started(told: tuple[Any, Any, int]) -> None:
    iterator, loader, ns = told
    number = _number(loader)
    if not number or not _native.loading_is_open():
        return
    _native.tell_started(number, ns)
    for index, worker in enumerate(iterator._workers):
        if worker.pid is not None:
            _native.tell_worker(number, index, worker.pid)
    _native.takes_for(iterator, number)
    queue: Any = iterator._worker_result_queue
    hook = _native.Hook
    if hasattr(queue, "_poll") and hasattr(queue, "_recv_bytes"):
        queue._poll = _native.timed_call(queue._poll, hook.LOADER_POLL)
        queue._recv_bytes = _native.timed_call(queue._recv_bytes, hook.LOADER_RECEIVE)


def _fetcher_made(fetcher: Any) -> None:
    """Once an epoch, where batches are made."""
    global _making
    worker: Any = sys.modules.get("torch.utils.data._utils.worker")
    if getattr(worker, "_worker_info", None) is not None:
        _become_worker()
    elif _making:
        _native.loads_for(fetcher, _making)
        _making = 0
        _watch_decoders()
    else:
        return
    if not _native.loading_is_open():
        return
    hook = _native.Hook.LOADER_PART
    fetcher.collate_fn = _native.timed_call(fetcher.collate_fn, hook, _native.PART_COLLATE)
    watch_transforms(fetcher.dataset)


def _become_worker() -> None:
    global _is_worker
    if not _is_worker:
        _is_worker = True
        if not _open():
            return
        _watch_decoders()
        _watch_files()
        from multiprocessing import reduction, util

        pickler: Any = reduction.ForkingPickler
        pickler.dumps = _native.timed_call(pickler.dumps, _native.Hook.LOADER_PICKLE)
        # the last thing at a worker's end; one that is killed loses its last 20 ms
        util.Finalize(None, _native.flush_loading, exitpriority=-1000)
    _native.be_worker()


# --- transforms


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Of the instance alone: no property is evaluated."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return
    if type(found) is dict:
        yield from list(cast(dict[str, Any], found).items())[:_MOST_ITEMS]


def _is_dataset(thing: Any) -> bool:
    kind = cast(Any, type(thing))
    plain = kind.__module__ in ("builtins", "numpy", "torch", "collections", "array", "pathlib")
    return not plain and (hasattr(kind, "__getitem__") or hasattr(kind, "__iter__"))


def datasets(dataset: Any) -> Iterator[Any]:
    """The dataset and those that it wraps: Subset, ConcatDataset, one's own."""
    waiting, seen = [dataset], {id(dataset)}
    while waiting and len(seen) < _MOST_ITEMS:
        thing = waiting.pop(0)
        yield thing
        for _, value in _attributes(thing):
            for inner in value[:_MOST_ITEMS] if type(value) in (list, tuple) else (value,):
                if _is_dataset(inner) and not callable(inner) and id(inner) not in seen:
                    seen.add(id(inner))
                    waiting.append(inner)


def keeps_epoch(dataset: Any) -> bool:
    """Whether the samples may depend on an epoch that a living worker would not hear of."""
    return any(
        hasattr(cast(Any, type(layer)), "set_epoch")
        or any(
            name.lstrip("_") in _EPOCH_NAMES and type(value) is int
            for name, value in _attributes(layer)
        )
        for layer in datasets(dataset)
    )


def _splits(loader: Any) -> bool:
    """Whether workers may learn which part is theirs without asking get_worker_info."""
    told = loader.worker_init_fn is not None
    return told or any("datapipe" in type(one).__module__ for one in datasets(loader.dataset))


def _holds_handles(dataset: Any) -> bool:
    for _, value in _attributes(dataset):
        kind = cast(Any, type(value))
        if issubclass(kind, io.IOBase) and not issubclass(kind, (io.BytesIO, io.StringIO)):
            return True
        if kind.__module__.split(".")[0] in ("h5py", "zipfile", "tarfile", "lmdb", "sqlite3"):
            return True
    return False


def _is_transform(thing: Any) -> bool:
    return callable(thing) and not issubclass(type(thing), type)


def _items(thing: Any) -> list[Any]:
    """What a list, tuple, dict or Sequential of callables holds; empty when it is none."""
    held: list[Any] = []
    if type(thing) is dict:  # a class of the user's own might run code of theirs
        held = list(cast(dict[Any, Any], thing).values())[:_MOST_ITEMS]
    elif type(thing) in (list, tuple):
        held = list(cast(list[Any], thing)[:_MOST_ITEMS])
    return held if held and all(map(_is_transform, held)) else []


def _inner_lists(thing: Any) -> list[Any]:
    """The containers of callables among a callable's attributes: it is a Compose."""
    found = [value for _, value in _attributes(thing) if _items(value)]
    torch_module = getattr(sys.modules.get("torch.nn"), "Module", None)
    if torch_module is not None and issubclass(type(thing), torch_module):
        found = [value for name, value in _attributes(thing) if name == "_modules" and value]
    return found


# Their class cannot be watched: it is everybody's.
_PLAIN: Any = (FunctionType, BuiltinFunctionType, MethodType, partial)


class _Search:
    """The callables that a dataset transforms samples with."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.found: list[tuple[Any, Any, Any]] = []  # callable, the list it is in, its place

    def container(self, held: Any, depth: int) -> None:
        places: Any = enumerate(held)
        if type(held) is dict:
            places = cast(dict[Any, Any], held).items()
        for place, item in list(places)[:_MOST_ITEMS]:
            if _is_transform(item):
                self.callable(item, held, place, depth)

    def callable(self, thing: Any, held: Any, place: Any, depth: int) -> None:
        if id(thing) in self.seen or len(self.seen) > _MOST_OBJECTS or depth > _MOST_DEPTH:
            return
        self.seen.add(id(thing))
        inner = [] if type(thing) is FunctionType else _inner_lists(thing)
        for one in inner:
            self.container(one, depth + 1)
        if not inner:
            self.found.append((thing, held, place))

    def dataset(self, dataset: Any) -> None:
        for thing in datasets(dataset):
            for name, value in _attributes(thing):
                if _items(value):
                    self.container(value, 0)
                elif _is_transform(value) and (not _is_dataset(value) or _inner_lists(value)):
                    self.callable(value, None, name, 0)


def _name_of(thing: Any) -> str:
    if type(thing) is partial:
        return _name_of(thing.func)
    kind = cast(Any, type(thing))
    named = thing if kind in _PLAIN else kind
    return str(getattr(named, "__qualname__", "method")).replace("<locals>.", "")


def watch_transforms(dataset: Any) -> None:
    """Time each callable of the dataset's transforms under its name."""
    search = _Search()
    search.dataset(dataset)
    wrapped: Any = _native.timed_call(len, _native.Hook.LOADER_PART)
    timed_call = cast(Any, type(wrapped))
    names: dict[str, int] = {}
    for thing, held, place in search.found:
        if type(thing) is timed_call:
            continue
        replaceable = _is_worker and type(held) in (list, dict)
        if type(thing) in _PLAIN and not replaceable:
            continue
        name = _name_of(thing)[-48:]
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name += f" ({names[name]})"
        number = _native.name_transform(name)
        if not number or _native.time_transform(thing, number):
            continue
        if replaceable:
            held[place] = _native.timed_call(thing, _native.Hook.LOADER_PART, number)


# --- decoding and files


_DECODERS: dict[str, tuple[str, ...]] = {
    "PIL.Image": ("open",),
    "cv2": ("imread", "imdecode"),
    "torchvision.io": ("read_image", "decode_image", "decode_jpeg", "decode_png", "read_video"),
    "torchvision.io.image": ("read_image", "decode_image", "decode_jpeg", "decode_png"),
}
_decoders_watched = False


def _watch_decoders() -> None:
    global _decoders_watched
    if _decoders_watched:
        return
    _decoders_watched = True
    for name, functions in _DECODERS.items():
        after_import(name, _watcher(functions))
    after_import("PIL.ImageFile", lambda module: _time(module.ImageFile, "load"))


def _watcher(functions: tuple[str, ...]) -> Callable[[ModuleType], None]:
    def watch(module: ModuleType) -> None:
        for function in functions:
            _time(module, function)

    return watch


def _time(owner: Any, name: str, part: int | None = None) -> None:
    function = getattr(owner, name, None)
    if function is not None:
        part = _native.PART_DECODE if part is None else part
        setattr(owner, name, _native.timed_call(function, _native.Hook.LOADER_PART, part))


def _watch_files() -> None:
    timed: Any = _native.timed_call(io.open, _native.Hook.LOADER_PART, _native.PART_OPEN)
    if builtins.open is io.open:
        builtins.open = timed
    io.open = timed


def install(module: ModuleType) -> None:
    """On torch.utils.data.dataloader."""
    iterator: Any = module._MultiProcessingDataLoaderIter
    utilities: Any = module._utils
    hook, timed = _native.Hook, _native.timed_call
    _native.set_loading_functions(fetcher_made=_fetcher_made, workers_started=_workers_started)
    for fetcher in (utilities.fetch._MapDatasetFetcher, utilities.fetch._IterableDatasetFetcher):
        fetcher.fetch = timed(fetcher.fetch, hook.LOADER_FETCH)
    kind: Any = module._DatasetKind
    kind.create_fetcher = timed(kind.create_fetcher, hook.LOADER_FETCHER_MADE)
    iterator.__init__ = timed(iterator.__init__, hook.LOADER_START)
    iterator._next_data = timed(iterator._next_data, hook.LOADER_NEXT)
    iterator._try_get_data = timed(iterator._try_get_data, hook.LOADER_TRY_GET)
    utilities.pin_memory.pin_memory = timed(utilities.pin_memory.pin_memory, hook.LOADER_PIN)
    asked = module.get_worker_info
    for owner in (module, utilities.worker, sys.modules.get("torch.utils.data")):
        if getattr(owner, "get_worker_info", None) is asked:
            setattr(owner, "get_worker_info", timed(asked, hook.LOADER_ASK_WHICH))  # noqa: B010
    os.register_at_fork(after_in_child=forget)
