"""Training loops of every shape, one after the other in one process: `steps.py NAME...`.

Each loop tells, for every step that ought to be seen, an instant inside it (anchor) and what it
spent in each phase, and for every step that ought to have failed an instant inside that one.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import common
import torch
from common import Meter, SlowData, SlowNet, SlowSGD, loss_of, sleep
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

LOOPS: dict[str, Callable[[Meter], Any]] = {}
BATCH = 2


def loop(function: Callable[[Meter], Any]) -> Callable[[Meter], Any]:
    LOOPS[function.__name__] = function
    return function


def loader(batches: int, **options: Any) -> DataLoader:
    return DataLoader(SlowData(batches * BATCH, ms=0.5), batch_size=BATCH, **options)


def model_and_optimizer(**options: Any) -> tuple[SlowNet, SlowSGD]:
    model = SlowNet(forward_ms=1.5, backward_ms=2, **options)
    optimizer = SlowSGD(model.parameters(), lr=0.01)
    optimizer.slow_ms = 1
    return model, optimizer


class Trainer:
    """The usual iteration, measured."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.model, self.optimizer = model_and_optimizer()

    def gradients(self, x: torch.Tensor, y: torch.Tensor) -> None:
        with self.meter("forward"):
            loss = loss_of(self.model(x), y)
        with self.meter("backward"):
            loss.backward()

    def update(self) -> None:
        with self.meter("optimizer"):
            self.optimizer.step()
        self.meter.stepped()
        self.optimizer.zero_grad()

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.gradients(x, y)
        self.update()


@loop
def two_epochs(meter: Meter) -> None:
    train, batches = Trainer(meter), loader(4)
    for _ in range(2):
        for x, y in meter.batches(batches):
            train(x, y)


@loop
def accumulation(meter: Meter) -> None:
    """14 micro-batches, a step every 4: the last two are a rest, and no step."""
    train = Trainer(meter)
    for i, (x, y) in enumerate(meter.batches(loader(14))):
        train.gradients(x, y)
        if i % 4 == 3:
            train.update()


@loop
def two_optimizers(meter: Meter) -> None:
    """Two models, two optimizers, one batch."""
    one, other = Trainer(meter), Trainer(meter)
    for x, y in meter.batches(loader(4)):
        one(x, y)
        other(x, y)


@loop
def gan(meter: Meter) -> None:
    """The discriminator's gradients reach through the generator; two optimizers and three backwards
    an iteration.
    """
    generator, discriminator = (
        SlowNet(forward_ms=1, backward_ms=1),
        SlowNet(forward_ms=1, backward_ms=1),
    )
    widen = nn.Linear(2, 8)
    of_g = SlowSGD([*generator.parameters(), *widen.parameters()], lr=0.01)
    of_d = SlowSGD(discriminator.parameters(), lr=0.01)
    for x, y in meter.batches(loader(4)):
        with meter("forward"):
            real = loss_of(discriminator(x), y)
        with meter("backward"):
            real.backward()
        with meter("forward"):
            fake = loss_of(discriminator(widen(generator(x)).detach()), y)
        with meter("backward"):
            fake.backward()
        with meter("optimizer"):
            of_d.step()
        of_d.zero_grad()
        with meter("forward"):
            fooled = loss_of(discriminator(widen(generator(x))), y)
        with meter("backward"):
            fooled.backward()
        with meter("optimizer"):
            of_g.step()
        of_g.zero_grad()
        meter.stepped()


class LateNet(SlowNet):
    """A class of its own: no root of it is seen before it is used."""


@loop
def late_root(meter: Meter) -> None:
    """From the 20th batch on another model is called too, before the first one, in the same
    epoch.
    """
    model, optimizer = model_and_optimizer()
    late = LateNet(forward_ms=2)
    for i, (x, y) in enumerate(meter.batches(loader(140))):
        with meter("forward"):
            more = late(x) if i >= 20 else 0
            loss = loss_of(model(x) + more, y)
        with meter("backward"):
            loss.backward()
        with meter("optimizer"):
            optimizer.step()
        meter.stepped()
        optimizer.zero_grad()


@loop
def two_loaders_zip(meter: Meter) -> None:
    """One iteration fetches from two loaders."""
    train, first, second = Trainer(meter), loader(4), loader(4)

    class Both:
        def __iter__(self) -> Iterator[Any]:
            return zip(first, second, strict=True)

    for (x, y), (u, v) in meter.batches(Both()):
        train.gradients(u, v)
        train(x, y)


@loop
def lbfgs(meter: Meter) -> None:
    """The closure runs forward and backward several times inside step."""
    model = SlowNet(forward_ms=1, backward_ms=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)
    for x, y in meter.batches(loader(4)):

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            with meter("forward"):
                loss = loss_of(model(x), y)
            with meter("backward"):
                loss.backward()
            return loss

        with meter("optimizer"):
            optimizer.step(closure)
        meter.stepped()


@loop
def lbfgs_without_loader(meter: Meter) -> None:
    model = SlowNet(forward_ms=1, backward_ms=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)
    x, y = torch.ones(2, 8), torch.tensor([0, 1])

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        with meter("forward"):
            loss = loss_of(model(x), y)
        with meter("backward"):
            loss.backward()
        return loss

    for _ in range(4):
        meter.close()
        with meter("optimizer"):
            optimizer.step(closure)
        meter.stepped()


@loop
def loaders_inside_loaders(meter: Meter) -> None:
    """Each outer batch says what the inner loader reads."""
    train = Trainer(meter)
    for outer, _ in meter.batches(DataLoader(SlowData(2), batch_size=1)):
        assert outer.shape == (1, 8)
        for x, y in meter.batches(loader(3)):
            train(x, y)


@loop
def loader_inside_a_dataset(meter: Meter) -> None:
    """A dataset that reads another loader to make a sample: that is its fetch, and no step's."""

    class Reads(SlowData):
        def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
            for x, y in loader(2):
                sample = x[0], y[0]
            return sample

    train = Trainer(meter)
    for x, y in meter.batches(DataLoader(Reads(4 * BATCH), batch_size=BATCH)):
        train(x, y)


@loop
def model_inside_a_dataset(meter: Meter) -> None:
    """A dataset that asks a model for its features: its fetch's time, and no validation."""
    features = SlowNet(forward_ms=1)

    class Asks(SlowData):
        def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
            x, y = super().__getitem__(index)
            features.eval()
            with torch.no_grad():
                features(x[None])
            return x, y

    train = Trainer(meter)
    for x, y in meter.batches(DataLoader(Asks(5 * BATCH, ms=0.5), batch_size=BATCH)):
        train(x, y)


@loop
def iterable_without_length(meter: Meter) -> None:
    class Stream(IterableDataset):
        def __iter__(self) -> Iterator[Any]:
            data = SlowData(5 * BATCH, ms=0.5)
            return (data[i] for i in range(len(data)))

    train = Trainer(meter)
    for x, y in meter.batches(DataLoader(Stream(), batch_size=BATCH)):
        train(x, y)


@loop
def prefetching(meter: Meter) -> None:
    """The next batch is fetched before the optimizer steps."""
    train = Trainer(meter)
    batches = meter.batches(loader(6))
    following = next(batches, None)
    while following is not None:
        x, y = following
        train.gradients(x, y)
        following = next(batches, None)
        train.update()


@loop
def peeks(meter: Meter) -> None:
    """One batch is looked at first, twice."""
    train, batches = Trainer(meter), loader(4)
    shape = next(iter(batches))[0].shape
    x, y = next(iter(batches))
    assert x.shape == shape
    for x, y in meter.batches(batches):
        train(x, y)


@loop
def without_loader(meter: Meter) -> None:
    train = Trainer(meter)
    x, y = torch.ones(2, 8), torch.tensor([0, 1])
    for _ in range(6):
        meter.close()
        train(x, y)


@loop
def without_loader_but_after_one(meter: Meter) -> None:
    """The exhausting fetch of the loop before lies in the first of these steps."""
    train = Trainer(meter)
    x, y = torch.ones(2, 8), torch.tensor([0, 1])
    for _ in range(24):
        meter.close()
        train(x, y)


@loop
def functional_with_loader(meter: Meter) -> None:
    """No module is called: forward is what lies between the fetch and backward."""
    weight = torch.zeros(8, 2, requires_grad=True)
    optimizer = SlowSGD([weight], lr=0.01)
    optimizer.slow_ms = 1
    for x, y in meter.batches(loader(4)):
        with meter("forward"):
            sleep(2)
            loss = loss_of(x @ weight, y)
        with meter("backward"):
            loss.backward()
        with meter("optimizer"):
            optimizer.step()
        meter.stepped()
        optimizer.zero_grad()


@loop
def functional_without_loader(meter: Meter) -> None:
    weight = torch.zeros(8, 2, requires_grad=True)
    optimizer = SlowSGD([weight], lr=0.01)
    optimizer.slow_ms = 1
    x, y = torch.ones(2, 8), torch.tensor([0, 1])
    for _ in range(6):
        meter.close()
        optimizer.zero_grad()
        with meter("forward"):
            sleep(6)
            loss = loss_of(x @ weight, y)
        with meter("backward"):
            loss.backward()
        meter.stepped()  # a step may end with its optimizer here
        with meter("optimizer"):
            optimizer.step()


@loop
def input_phase_without_loader(meter: Meter) -> None:
    """The way out that the card names: the user says what is input."""
    import stepscope

    train = Trainer(meter)
    for _ in range(6):
        meter.close()
        with meter("input"), stepscope.phase("input"):
            sleep(2)
            x, y = torch.ones(2, 8), torch.tensor([0, 1])
        train(x, y)


@loop
def user_phases(meter: Meter) -> None:
    import stepscope

    train = Trainer(meter)
    for x, y in meter.batches(loader(4)):
        with meter("augment"), stepscope.phase("augment"):
            sleep(2)
        with meter("checkpoint"), stepscope.phase("checkpoint"):
            sleep(1)
        train(x, y)
        with meter("log metrics"), stepscope.phase("log metrics"):
            sleep(1)


@loop
def workers_fork(meter: Meter) -> None:
    train = Trainer(meter)
    batches = loader(4, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        for x, y in meter.batches(batches):
            train(x, y)


@loop
def workers_fork_persistent(meter: Meter) -> None:
    train = Trainer(meter)
    batches = loader(4, num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    for _ in range(2):
        for x, y in meter.batches(batches):
            train(x, y)


@loop
def workers_spawn(meter: Meter) -> None:
    train = Trainer(meter)
    for x, y in meter.batches(loader(4, num_workers=1, multiprocessing_context="spawn")):
        train(x, y)


class Broken(Exception):
    pass


@loop
def caught_exceptions(meter: Meter) -> list[int]:
    """Steps 2, 4 and 6 of 8 are left by an exception, in forward, backward and optimizer; the loop
    goes on.
    """
    failed: list[int] = []
    train = Trainer(meter)

    class Breaks(nn.Module):
        breaks = False

        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.breaks:
                raise Broken("forward")
            return self.inner(x)

    def break_backward(_: torch.Tensor) -> None:
        raise Broken("backward")

    def break_optimizer(*_: Any) -> None:
        raise Broken("optimizer")

    train.model = Breaks(train.model)
    for i, (x, y) in enumerate(meter.batches(loader(8))):
        train.model.breaks = i == 2
        handle = train.model.inner.last.weight.register_hook(break_backward) if i == 4 else None
        if i == 6:
            handle = train.optimizer.register_step_pre_hook(break_optimizer)
        try:
            train(x, y)
        except Broken:
            failed.append(common.now())
            # what the failed step spent is in no step's figures
            meter._open = {"begin": common.now(), "anchor": None, "phases": {}}
            continue
        finally:
            if handle is not None:
                handle.remove()
    return failed


@loop
def grad_scaler_skips(meter: Meter) -> None:
    """Every third step has an infinite gradient: the scaler does not let the optimizer step."""
    model, optimizer = model_and_optimizer()
    scaler = torch.amp.GradScaler("cpu")
    for i, (x, y) in enumerate(meter.batches(loader(9))):
        with meter("forward"):
            loss = loss_of(model(x), y)
            if i % 3 == 2:
                loss = loss * float("inf")
        with meter("backward"):
            scaler.scale(loss).backward()
        with meter("scaler"):
            scaler.step(optimizer)
            scaler.update()
        meter.stepped()
        optimizer.zero_grad()


@loop
def teacher(meter: Meter) -> None:
    """An average of the model, itself trainable, is asked without gradients in each step."""
    train = Trainer(meter)
    average = copy.deepcopy(train.model)
    for x, _ in meter.batches(loader(6)):
        with meter("forward"), torch.no_grad():
            wanted = average(x).argmax(-1)
        train(x, wanted)
        with torch.no_grad():
            for mine, its in zip(average.parameters(), train.model.parameters(), strict=True):
                mine.lerp_(its, 0.01)


@loop
def in_a_thread(meter: Meter) -> None:
    """The loop runs in a thread of the user's; for a process of its own."""

    def run() -> None:
        train = Trainer(meter)
        for x, y in meter.batches(loader(6)):
            train(x, y)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@loop
def breaks_out(meter: Meter) -> None:
    """Leaves the loader in the middle of each epoch."""
    train, batches = Trainer(meter), loader(6)
    for _ in range(3):
        for i, (x, y) in enumerate(meter.batches(batches)):
            train(x, y)
            if i == 1:
                break


def with_validation(
    meter: Meter, *, evaluate: bool = True, no_grad: bool = True, train_again: bool = True
) -> None:
    train, batches, held_out = Trainer(meter), loader(3), loader(3)
    for _ in range(4):
        if train_again:
            train.model.train()
        for x, y in meter.batches(batches):
            train(x, y)
        with meter("validation"):
            if evaluate:
                train.model.eval()
            with torch.set_grad_enabled(not no_grad):
                for x, y in held_out:
                    loss_of(train.model(x), y)
                    sleep(1)


@loop
def validation(meter: Meter) -> None:
    with_validation(meter)


@loop
def validation_without_eval(meter: Meter) -> None:
    with_validation(meter, evaluate=False)


@loop
def validation_with_gradients(meter: Meter) -> None:
    with_validation(meter, no_grad=False)


@loop
def validation_and_never_train_again(meter: Meter) -> None:
    with_validation(meter, train_again=False)


@loop
def validation_in_mid_epoch(meter: Meter) -> None:
    train, held_out = Trainer(meter), loader(2)
    for i, (x, y) in enumerate(meter.batches(loader(8))):
        train(x, y)
        if i % 4 == 3:
            with meter("validation"):
                train.model.eval()
                with torch.no_grad():
                    for u, v in held_out:
                        loss_of(train.model(u), v)
                train.model.train()


@loop
def frozen_batch_norm(meter: Meter) -> None:
    """Trained in eval mode from the first step on: training all the same."""
    train = Trainer(meter)
    train.model, train.optimizer = model_and_optimizer(batch_norm=True)
    train.model.eval()
    for _ in range(2):
        for x, y in meter.batches(loader(4)):
            train(x, y)


@loop
def sanity_check_first(meter: Meter) -> None:
    """Validation comes before the first training step, as under Lightning."""
    train, held_out = Trainer(meter), loader(2)
    train.model.eval()
    with torch.no_grad():
        for x, y in held_out:
            loss_of(train.model(x), y)
    train.model.train()
    for x, y in meter.batches(loader(4)):
        train(x, y)


def after_all_that_say_more(name: str) -> tuple[bool, bool]:
    """Loops that show less of themselves come first: no fetch, and before these, no module."""
    return not name.endswith("without_loader"), not name.startswith("functional")


def main() -> None:
    all_others = [name for name in LOOPS if name not in ("in_a_thread", "late_root")]
    names = sys.argv[1:] or sorted(all_others, key=after_all_that_say_more)
    found = {}
    for name in names:
        torch.manual_seed(0)
        meter = Meter()
        failed = LOOPS[name](meter)
        meter.close()
        found[name] = {"steps": meter.steps, "failed": failed or []}
    common.write_measured(loops=found)


if __name__ == "__main__":
    main()
