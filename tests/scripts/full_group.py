"""Trains while its memory group is full: full_group.py USAGE STAT LIMIT held|cached.

USAGE, STAT: the group's files. Fills three quarters of LIMIT bytes with memory that the process
holds, or nearly all of it with a file that it wrote, which the kernel can give back.
"""

import sys
import tempfile
from pathlib import Path

import torch
from common import sleep, write_measured
from torch import nn

MB = 1 << 20
usage, stat, limit, how = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def held() -> int:
    """Of the group, without page cache."""
    words = dict(line.split() for line in stat.read_text().splitlines())
    return int(words.get("total_rss") or words["anon"])


block = torch.empty(0)
file = tempfile.TemporaryFile(dir=Path.cwd())  # noqa: SIM115
if how == "held":  # at once: the group's own figures come seconds late
    block = torch.ones(int(0.75 * limit) - int(usage.read_text()), dtype=torch.uint8)
while how == "cached" and int(usage.read_text()) < 0.96 * limit:
    file.write(b"x" * (4 * MB))
    file.flush()

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
most_held = most_used = 0
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    most_held = max(most_held, held())
    most_used = max(most_used, int(usage.read_text()))
    sleep(100)
write_measured(held=most_held, used=most_used)
