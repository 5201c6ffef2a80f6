"""A loop under accelerate: its loader fetches one batch ahead, and its gradient accumulation steps
every second.
"""

import common
import torch
from accelerate import Accelerator
from common import Meter, SlowData, SlowNet, loss_of
from torch.utils.data import DataLoader

# The batch after the last is sought before its step: that step ends with the optimizer.
accelerator = Accelerator(gradient_accumulation_steps=2)
meter = Meter()
model = SlowNet(forward_ms=2, backward_ms=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer.register_step_post_hook(lambda *_: meter.stepped())
loader = DataLoader(SlowData(96), batch_size=2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for x, y in meter.batches(loader):
    with accelerator.accumulate(model):
        loss = loss_of(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
meter.close()
common.write_measured(steps=meter.steps)
