"""Trains on JPEG files that Pillow decodes: `pictures.py FOLDER STEPS [decoded]`. Makes them if
there is no FOLDER. decoded: reads the same pictures from files of plain bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

COUNT, SIZE, BATCH = 200, 280, 8


class Pictures(Dataset[torch.Tensor]):
    def __init__(self, folder: Path, decoded: bool) -> None:
        self.decoded = decoded
        self.files = sorted(folder.glob("*.rgb" if decoded else "*.jpg"))

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        file = self.files[index % len(self.files)]
        if self.decoded:
            picture = Image.frombytes("RGB", (SIZE, SIZE), file.read_bytes())
        else:
            picture = Image.open(file)
            picture.load()
        pixels = bytearray(picture.resize((64, 64)).tobytes())
        picture.close()
        return torch.frombuffer(pixels, dtype=torch.uint8).float().reshape(3, 64, 64) / 255


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(COUNT):
        noise = Image.effect_noise((SIZE, SIZE), 20 + i % 60).convert("RGB")
        noise.save(folder / f"{i}.jpg", "JPEG", quality=90)
        (folder / f"{i}.rgb").write_bytes(noise.tobytes())


def main() -> None:
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    decoded = sys.argv[3:] == ["decoded"]
    if not folder.is_dir():
        make(folder)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.LazyLinear(10),
    )  # fmt: skip
    model(torch.zeros(BATCH, 3, 64, 64))
    loader = DataLoader(Pictures(folder, decoded), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, batch in enumerate(loader):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step + 1 == steps:
            return


if __name__ == "__main__":
    main()
