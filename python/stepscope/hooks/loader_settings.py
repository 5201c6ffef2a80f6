"""Other settings for the DataLoader that feeds the training loop, without an edit of the script.

Nothing here is in place unless the environment asks for it: STEPSCOPE_LOADER holds the settings as
a JSON object, with the numbers of the loaders they are for (in the order in which this process made
them: a validation loader keeps its own); with STEPSCOPE_TUNE=1 every loader is described in
loaders.jsonl in the segment folder, for `stepscope tune loader`. Settings never change which
samples are given, nor their order.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any

from stepscope.hooks import loading


class LimitThreads:
    """A worker_init_fn: limits the threads of the worker's libraries, then calls the user's own."""

    def __init__(self, threads: int, own: Callable[[int], None] | None) -> None:
        self.threads = threads
        self.own = own

    def __call__(self, worker_id: int) -> None:
        torch: Any = sys.modules["torch"]
        torch.set_num_threads(self.threads)
        cv2: Any = sys.modules.get("cv2")
        if cv2 is not None:
            cv2.setNumThreads(self.threads)
        if self.own is not None:
            self.own(worker_id)


class TensorRows:
    """A batch of a TensorDataset in one go: what default_collate makes of its rows, bit by bit."""

    def __init__(self, tensors: tuple[Any, ...]) -> None:
        self.tensors = tensors

    def __call__(self, indices: list[int]) -> list[Any]:
        return [tensor[indices] for tensor in self.tensors]


def as_it_is(batch: Any) -> Any:
    return batch


def _wanted() -> dict[str, Any] | None:
    try:
        wanted: Any = json.loads(os.environ["STEPSCOPE_LOADER"])
        numbers = [int(number) for number in wanted["loaders"]]
        return {**wanted["settings"], "loaders": numbers}
    except (KeyError, TypeError, ValueError):
        return None


def arguments(given: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The arguments of DataLoader.__init__ with these settings in their place."""
    out = dict(given)
    workers = int(wanted.get("num_workers", out.get("num_workers", 0)))
    out["num_workers"] = workers
    if "pin_memory" in wanted:
        out["pin_memory"] = bool(wanted["pin_memory"])
    if wanted.get("batch_wise"):
        _go_batch_wise(out)
    if workers == 0:
        out |= {"prefetch_factor": None, "persistent_workers": False}
        out |= {"multiprocessing_context": None, "timeout": 0}
        return out
    if wanted.get("prefetch_factor"):
        out["prefetch_factor"] = int(wanted["prefetch_factor"])
    if "persistent_workers" in wanted:
        out["persistent_workers"] = bool(wanted["persistent_workers"])
    if wanted.get("multiprocessing_context"):
        out["multiprocessing_context"] = wanted["multiprocessing_context"]
    if wanted.get("worker_threads"):
        out["worker_init_fn"] = LimitThreads(
            int(wanted["worker_threads"]), out.get("worker_init_fn")
        )
    return out


def _plain_rows(dataset: Any, collate_fn: Any) -> bool:
    """Rows of tensors, put together by the default collate: a batch is an indexing of each."""
    datasets: Any = sys.modules["torch.utils.data.dataset"]
    collate: Any = sys.modules["torch.utils.data._utils.collate"]
    return (
        type(dataset) is datasets.TensorDataset
        and "__getitems__" not in vars(dataset)
        and collate_fn in (None, collate.default_collate)
        and all(str(tensor.layout) == "torch.strided" for tensor in dataset.tensors)
    )


def _go_batch_wise(arguments: dict[str, Any]) -> None:
    """On a copy of the dataset, whose tensors are the same: another loader may have it too."""
    dataset = arguments["dataset"]
    batches = arguments.get("batch_sampler") or arguments.get("batch_size", 1) is not None
    if not batches or not _plain_rows(dataset, arguments.get("collate_fn")):
        return
    arguments["dataset"] = copied = copy.copy(dataset)
    copied.__getitems__ = TensorRows(dataset.tensors)
    arguments["collate_fn"] = as_it_is


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _shares_out(dataset: Any) -> bool:
    """Whether an iterable dataset asks which worker it is in, so that workers do not repeat it."""
    for layer in loading.datasets(dataset):
        for cls in type(layer).__mro__:
            if cls.__module__.startswith("torch.utils.data"):
                continue
            for member in vars(cls).values():
                code = getattr(inspect.unwrap(member), "__code__", None) if callable(member) else 0
                if isinstance(code, CodeType) and "get_worker_info" in _names_in(code):
                    return True
    return False


def _context_name(context: Any) -> str:
    if context is None or isinstance(context, str):
        return context or ""
    return context.get_start_method()


def describe(loader: Any) -> dict[str, Any]:
    """What the tuner must know of a loader. Reads attributes only: no sample is fetched."""
    iterable = any(cls.__name__ == "IterableDataset" for cls in type(loader.dataset).__mro__)
    try:
        steps_per_epoch = 0 if iterable else len(loader)
    except (TypeError, NotImplementedError, AttributeError):
        steps_per_epoch = 0
    return {
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor or 0,
        "persistent_workers": loader.persistent_workers,
        "pin_memory": bool(loader.pin_memory),
        "multiprocessing_context": _context_name(loader.multiprocessing_context),
        "dataset": type(loader.dataset).__name__,
        "iterable": iterable,
        "shares_out": _shares_out(loader.dataset) if iterable else True,
        "keeps_epoch": loading.keeps_epoch(loader.dataset),
        "batch_wise": loader.batch_sampler is not None
        and _plain_rows(loader.dataset, loader.collate_fn),
        "threaded": "cv2" in sys.modules,
        "steps_per_epoch": steps_per_epoch,
    }


def tell(line: dict[str, Any]) -> None:
    """A line for the tuner; lost when it cannot be written."""
    folder = os.environ.get("STEPSCOPE_SEGMENTS")
    if not folder:
        return
    try:
        log = os.open(
            os.path.join(folder, "loaders.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
        try:
            os.write(log, (json.dumps({"pid": os.getpid(), **line}) + "\n").encode())
        finally:
            os.close(log)
    except OSError:
        pass


def sizes(batch: Any, depth: int = 4) -> tuple[int, int]:
    """Bytes and number of the tensors in a batch."""
    if hasattr(batch, "nbytes") and hasattr(batch, "untyped_storage"):
        return batch.nbytes, 1
    parts: list[Any] = []
    if depth > 0 and isinstance(batch, dict):
        parts = list(batch.values())  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    elif depth > 0 and isinstance(batch, (list, tuple)):
        parts = list(batch)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    found = [sizes(part, depth - 1) for part in parts]
    return sum(size for size, _ in found), sum(count for _, count in found)


def _measure_first_batches(iterator: Any) -> None:
    """Tells the size of each loader's first batch."""
    original = iterator.__next__
    measured: set[int] = set()

    @functools.wraps(original)
    def first_batch(self: Any) -> Any:
        batch = original(self)
        if id(self) not in measured:
            measured.add(id(self))
            size, tensors = sizes(batch)
            tell({"batch_bytes": size, "tensors": tensors})
        return batch

    iterator.__next__ = first_batch


def install(module: ModuleType) -> None:
    wanted = _wanted()
    tuning = os.environ.get("STEPSCOPE_TUNE") == "1"
    if wanted is None and not tuning:
        return
    from stepscope.hooks.dataloader import loader_number  # needs the extension

    loader: Any = module.DataLoader
    original: Any = loader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def with_settings(self: Any, *args: Any, **kwargs: Any) -> None:
        number = loader_number(self)
        ours = wanted is not None and number in wanted["loaders"]
        if ours:
            assert wanted is not None
            bound = signature.bind(self, *args, **kwargs)
            given = dict(bound.arguments)
            given.pop("self")
            args, kwargs = (), arguments(given, wanted)
        original(self, *args, **kwargs)
        if tuning:
            try:
                tell({"number": number, "changed": ours, **describe(self)})
            except Exception as error:  # an odd dataset: its run goes on
                tell({"number": number, "error": f"{type(error).__name__}: {error}"})

    loader.__init__ = with_settings
    if tuning:
        _measure_first_batches(module._BaseDataLoaderIter)
