"""Trains a small image classifier on pictures that it draws itself. Knows nothing of Stepscope.

    python train.py --slow    augments one picture at a time, pixel by pixel, in Python
    python train.py           augments the whole batch with tensor operations

Both see the same pictures and do the same augmentation (brightness, contrast, mirror, noise).
"""

import argparse
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SIZE, BATCH = 4, 32, 32


def draw_pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Stripes: the class is their direction, their phase and width are random."""
    labels = torch.randint(CLASSES, (count,))
    angle = labels * torch.pi / CLASSES
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    along = x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]
    width = 3 + 3 * torch.rand(count, 1, 1)
    shade = torch.sin(along / width + 6 * torch.rand(count, 1, 1))
    tint = torch.rand(count, 3, 1, 1)
    return (shade[:, None] * 0.25 + 0.5) * (0.5 + tint), labels


class Pictures(Dataset):
    def __init__(self, count: int) -> None:
        self.pictures, self.labels = draw_pictures(count)

    def __len__(self) -> int:
        return len(self.labels)


class SlowPictures(Pictures):
    """What a first version often looks like: a loop over pixels for each picture."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        brightness, contrast = random.uniform(-0.2, 0.2), random.uniform(0.7, 1.3)
        mirror = random.random() < 0.5
        picture = self.pictures[index].tolist()
        for channel in picture:
            for y, row in enumerate(channel):
                changed = [
                    min(max((value - 0.5) * contrast + 0.5 + brightness, 0.0), 1.0)
                    + random.uniform(-0.02, 0.02)
                    for value in row
                ]
                channel[y] = changed[::-1] if mirror else changed
        return torch.tensor(picture), self.labels[index]


class FastPictures(Pictures):
    """The repair: DataLoader asks for a whole batch at once, and tensor operations change it."""

    def __getitems__(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        pictures = self.pictures[indices]
        count = len(indices)
        brightness = torch.empty(count, 1, 1, 1).uniform_(-0.2, 0.2)
        contrast = torch.empty(count, 1, 1, 1).uniform_(0.7, 1.3)
        pictures = ((pictures - 0.5) * contrast + 0.5 + brightness).clamp_(0, 1)
        mirror = torch.rand(count) < 0.5
        pictures[mirror] = pictures[mirror].flip(-1)
        return pictures + torch.empty_like(pictures).uniform_(-0.02, 0.02), self.labels[indices]


def make_loader(slow: bool, count: int) -> DataLoader:
    if slow:
        return DataLoader(SlowPictures(count), batch_size=BATCH, shuffle=True, drop_last=True)
    return DataLoader(
        FastPictures(count),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        collate_fn=lambda batch: batch,  # __getitems__ made a batch already
    )


def make_model() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU()),
        *(nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 48, 3, stride=2, padding=1), nn.BatchNorm2d(48), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, CLASSES)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slow", action="store_true", help="the input pipeline before its repair")
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--seconds", type=float, default=15, help="stop then, after 60 steps")
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # so that a busy machine slows both halves of a step alike
    torch.manual_seed(0)
    random.seed(0)
    loader = make_loader(arguments.slow, count=40 * BATCH)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_function = nn.CrossEntropyLoss()

    step, right, last = 0, 0, arguments.steps
    started = printed = time.perf_counter()
    while step < last:
        for pictures, labels in loader:
            optimizer.zero_grad()
            scores = model(pictures)
            loss = loss_function(scores, labels)
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == labels).sum())
            step += 1
            if step % 20 == 0:
                now = time.perf_counter()
                print(
                    f"step {step:4d}/{arguments.steps}  loss {loss.item():.3f}  right "
                    f"{right / (20 * BATCH):4.0%}  {20 * BATCH / (now - printed):6.0f} pictures/s",
                    flush=True,
                )
                right, printed = 0, now
                if step >= 60 and now - started > arguments.seconds:
                    last = step
            if step == last:
                break


if __name__ == "__main__":
    main()
