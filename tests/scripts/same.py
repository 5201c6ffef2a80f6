"""What a script can see of its own run, as a list of named facts: with and without stepscope they
must be equal.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import inspect
import io
import logging
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import common
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FACTS: dict[str, Any] = {}


def fact(function: Callable[[], Any]) -> Callable[[], Any]:
    FACTS[function.__name__] = function
    return function


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def rng_state() -> dict[str, str]:
    return {
        "torch": digest(torch.get_rng_state().numpy().tobytes()),
        "random": digest(repr(random.getstate()).encode()),
        "numpy": digest(repr(numpy.random.get_state()).encode()),
    }


def seed() -> None:
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(32), nn.Linear(32, 2)
    )


def pause_or_resume(step: int) -> None:
    """Where there is a stepscope: three steps seen, two not."""
    ours: Any = sys.modules.get("stepscope")
    if ours is not None and step % 5 in (2, 4):
        (ours.pause if step % 5 == 2 else ours.resume)()


def train(
    model: nn.Module,
    steps: int,
    *,
    workers: int = 0,
    between: Callable[[int], None] = lambda step: None,
) -> list[str]:
    data = TensorDataset(torch.randn(4 * 25, 8), torch.arange(4 * 25) % 2)
    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=workers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses: list[str] = []
    while len(losses) < steps:
        for x, y in loader:
            optimizer.zero_grad()
            loss = common.loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
            between(len(losses))
        with torch.no_grad():
            model.eval()
            losses.append(sum(model(x).sum().item() for x, _ in loader).hex())
            model.train()
    return losses


def losses_and_rng(workers: int, **options: Any) -> Any:
    seed()
    losses = train(mlp(), 50, workers=workers, **options)
    assert len(losses) >= 50
    print("trained with", workers, "workers")
    return {"losses": losses, "rng": rng_state()}


@fact
def losses_without_workers() -> Any:
    return losses_and_rng(0)


@fact
def losses_with_workers() -> Any:
    return losses_and_rng(2)


@fact
def losses_with_pauses() -> Any:
    found = losses_and_rng(2, between=pause_or_resume)
    ours: Any = sys.modules.get("stepscope")
    if ours is not None:
        ours.resume()
    return found


@fact
def interpreter() -> Any:
    custom = sys.modules.get("sitecustomize")
    return {
        "argv": sys.argv,
        "path": sys.path,
        "cwd": os.getcwd(),
        "executable": sys.executable,
        "main": sys.modules["__main__"].__file__,
        "sitecustomize": getattr(custom, "__file__", None),
        "mark": getattr(custom, "MARK", None),
        "path_importer_cache": sorted(key for key in sys.path_importer_cache if "_inject" in key),
        "flags": repr(sys.flags),
        "hooks": [repr(sys.excepthook), repr(sys.unraisablehook), repr(threading.excepthook)],
        "trace": [repr(sys.gettrace()), repr(sys.getprofile())],
        "recursion": sys.getrecursionlimit(),
        "switch": sys.getswitchinterval(),
    }


@fact
def process() -> Any:
    for thread in threading.enumerate():  # of the loaders' queues: some are still about to end
        if thread.name == "QueueFeederThread":
            thread.join()
    for _ in range(200):  # a joined thread's task goes a moment later
        if len(os.listdir("/proc/self/task")) == len(threading.enumerate()):
            break
        time.sleep(0.01)
    maps = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in sorted(os.listdir("/proc/self/fd"))
        if os.path.lexists(f"/proc/self/fd/{fd}")
    ]
    return {
        "signals": {s.name: repr(signal.getsignal(s)) for s in signal.Signals},
        "threads": [thread.name for thread in threading.enumerate()],
        "tasks": len(os.listdir("/proc/self/task")),
        "descriptors": [m for m in maps if not m.startswith(("pipe:", "socket:", "/proc/"))],
        "environment": sorted(
            (k, v)
            for k, v in os.environ.items()
            if k != "PYTHONPATH" and k != "MEASURED" and not k.startswith("STEPSCOPE_")
        ),
        "handlers": repr(logging.getLogger().handlers),
        "warnings": repr(warnings.filters),
        "umask": os.umask(os.umask(0o22)),
    }


@fact
def garbage_collector() -> Any:
    return {"on": gc.isenabled(), "threshold": gc.get_threshold(), "debug": gc.get_debug()}


@fact
def attributes_of_a_model() -> Any:
    model = mlp()
    train(model, 3)
    hooks = {key: repr(value) for key, value in vars(model).items() if "hook" in key}
    return {
        "instance": sorted(vars(model)),
        "hooks": hooks,
        "class": sorted(vars(nn.Sequential)),
        "module": sorted(vars(nn.Module)),
        "call": [
            repr(nn.Module.__call__),
            repr(type(model).__call__),
            repr(model.forward.__func__),
        ],
        "parameter_hooks": [sorted(vars(p)) for p in model.parameters()],
        "optimizer": sorted(vars(torch.optim.SGD(model.parameters(), lr=1))),
    }


@fact
def deepcopy_runs_its_own_weights() -> Any:
    seed()
    model = mlp()
    train(model, 3)
    average = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in average.parameters():
            parameter.mul_(0.5)
    x = torch.ones(3, 8)
    average.eval()
    by_hand = x
    for layer in average:
        by_hand = layer(by_hand)
    assert torch.equal(average(x), by_hand)
    model.eval()
    assert not torch.equal(average(x), model(x))
    swa = torch.optim.swa_utils.AveragedModel(model)
    swa.update_parameters(model)
    return [average(x).tolist(), model(x).tolist(), swa(x).tolist()]


@fact
def pickle_and_save() -> Any:
    seed()
    model = mlp()
    train(model, 3)
    pickled = pickle.dumps(model)
    buffer = io.BytesIO()
    torch.save({"whole": model, "state": model.state_dict()}, buffer)
    old = io.BytesIO()
    torch.save(model.state_dict(), old, _use_new_zipfile_serialization=False)
    torch.save(model, "model.pt")
    assert b"stepscope" not in pickled + buffer.getvalue()
    again = pickle.loads(pickled)
    again.eval()
    saved = torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)["whole"].eval()
    x = torch.ones(3, 8)
    assert torch.equal(again(x), saved(x))
    return [len(pickled), digest(buffer.getvalue()), len(old.getvalue()), again(x).tolist()]


@fact
def jit() -> Any:
    seed()
    model = mlp()
    train(model, 3)
    model.eval()
    x = torch.ones(3, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced, scripted = torch.jit.trace(model, x), torch.jit.script(model)
    assert torch.equal(traced(x), model(x))
    assert torch.equal(scripted(x), model(x))
    return [str(traced.graph), str(scripted.graph)]


@fact
def fx() -> Any:
    model = mlp()
    train(model, 3)
    graph = torch.fx.symbolic_trace(model)
    losses = train(graph, 3)
    return [str(graph.graph), len(losses)]


@fact
def export() -> Any:
    seed()
    model = mlp()
    train(model, 3)
    program = torch.export.export(model.eval(), (torch.ones(3, 8),))
    assert torch.equal(program.module()(torch.ones(3, 8)), model(torch.ones(3, 8)))
    return str(program.graph)


@fact
def functional_call() -> Any:
    seed()
    model = mlp().eval()
    weights = {name: p.detach() * 2 for name, p in model.named_parameters()}
    x = torch.ones(3, 8)
    batched = torch.func.vmap(
        lambda one: torch.func.functional_call(model, weights, (one[None],))[0]
    )(x)
    return [torch.func.functional_call(model, weights, (x,)).tolist(), batched.tolist()]


def described(function: Any) -> dict[str, Any]:
    def of(what: Callable[[Any], Any]) -> Any:
        try:
            return str(what(function))
        except (TypeError, ValueError, OSError, AttributeError) as error:
            return f"{type(error).__name__}: {error}"

    return {
        "name": of(lambda f: f.__name__),
        "qualname": of(lambda f: f.__qualname__),
        "module": of(lambda f: f.__module__),
        "doc": of(lambda f: f.__doc__),
        "signature": of(inspect.signature),
        "source": of(lambda f: digest(inspect.getsource(f).encode())),
        "function": of(lambda f: isinstance(f, type(described))),
        "annotations": of(lambda f: sorted(f.__annotations__)),
    }


@fact
def patched_functions() -> Any:
    from torch.distributed import ProcessGroup, Work
    from torch.utils.data import dataloader

    model = mlp()
    train(model, 2)
    functions = {
        "loader_iter": DataLoader.__iter__,
        "iterator_next": dataloader._BaseDataLoaderIter.__next__,
        "iterator_init": dataloader._BaseDataLoaderIter.__init__,
        "worker_info": torch.utils.data.get_worker_info,
        "save": torch.save,
        "_save": torch.serialization._save,
        "engine": torch.autograd._engine_run_backward,
        "backward": torch.Tensor.backward,
        "grad": torch.autograd.grad,
        "sgd_step": torch.optim.SGD.step,
        "adamw_step": torch.optim.AdamW.step,
        "zero_grad": torch.optim.Optimizer.zero_grad,
        "train": nn.Module.train,
        "eval": nn.Module.eval,
        "to": torch.Tensor.to,
        "module_to": nn.Module.to,
        "sync_buffers": nn.parallel.DistributedDataParallel._sync_buffers,
        "maybe_step": torch.amp.GradScaler._maybe_opt_step,
        "scaler_step": torch.amp.GradScaler.step,
        "model": model,
        "forward": model.forward,
        "call": model.__call__,
    }
    told = {name: described(function) for name, function in functions.items()}
    for function in (ProcessGroup.allreduce, Work.wait):  # of C++: no signature and no source
        told[function.__name__] = [function.__qualname__.split(".")[-1], function.__doc__]
    return told


@fact
def torch_functions() -> Any:
    """What a TorchFunctionMode, and batches and parameters of a class with a torch function of its
    own, are asked.
    """
    asked: list[str] = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(getattr(func, "__qualname__", repr(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(getattr(func, "__qualname__", repr(func)))
            return func(*args, **(kwargs or {}))

    seed()
    with Mode():
        train(mlp(), 3)
    model = nn.Linear(8, 2)
    model.weight = nn.Parameter(model.weight.detach().as_subclass(Watched))
    batches = DataLoader(
        TensorDataset(torch.ones(12, 8)),
        batch_size=4,
        collate_fn=lambda rows: torch.stack([row for (row,) in rows]).as_subclass(Watched),
    )
    for x in batches:
        model(x).sum().backward()
    return asked


@fact
def classes_are_freed() -> Any:
    """A module's class that was made in a function goes when nobody holds it any more."""
    seen = []
    for _ in range(3):

        class Made(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Linear(8, 2)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.inner(x)

        model = Made()
        train(model, 3)
        seen.append(weakref.ref(Made))
        del Made, model
    gc.collect()
    return [reference() is None for reference in seen]


@fact
def memory() -> Any:
    """What 2000 more steps leave behind; not compared for equality."""
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.ones(100, 8)), batch_size=2)

    def steps(count: int) -> tuple[int, int]:
        for _ in range(count // 50):
            for (x,) in loader:
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as statm:
            resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return sys.getallocatedblocks(), resident

    before = steps(500)
    after = steps(2000)
    return {"blocks": after[0] - before[0], "bytes": after[1] - before[1]}


def main() -> None:
    found = {}
    for name in sys.argv[1:] or list(FACTS):
        found[name] = FACTS[name]()
    observed = "stepscope" in sys.modules
    common.write_measured(facts=found, observed=observed)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
