// Marks for what runs at every event in the training process.
//
// Between two events the model's own work throws our code and data out of the caches and, what costs
// more, out of the TLB. So what an event touches lies together: hot code is what the linker gathers
// in .text.hot, hot data has a section of its own, a page or two in all.
#pragma once

#define STEPSCOPE_HOT_CODE [[gnu::hot]]
#define STEPSCOPE_HOT_DATA [[gnu::section("stepscope_hot")]]
