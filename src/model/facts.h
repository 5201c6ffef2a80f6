// What is known about a rank's process besides its steps: one bit each, set once, never cleared.
// The bits stand in the segment's header (wire) and in RankHistory::facts; every stage from model
// on may read them.
#pragma once

#include <cstdint>

namespace stepscope {

enum FactBits : uint32_t {
  kFactAccelerator = 1u << 0,  // parameters are on an accelerator: host time is not device time
  kFactDataLoader = 1u << 1,   // a DataLoader was seen
  kFactDdp = 1u << 2,
  kFactFsdp = 1u << 3,
  kFactExplicitSteps = 1u << 4,     // trace_step makes the steps
  kFactRootModule = 1u << 5,        // forward is timed from module calls
  kFactReadyNotMeasured = 1u << 6,  // backward without a ready mark although world_size > 1
  kFactTorchImported = 1u << 7,
  kFactClosed = 1u
      << 8,  // Recorder::close() was called: every record is published. The agent writes the card
  // A shuffling DistributedSampler gave two whole epochs in the same order: set_epoch was not called.
  kFactSameOrder = 1u << 9,
};

}  // namespace stepscope
