// What the time of loading a batch is made of: the parts that are measured inside the processes
// that load, and in the training process while it takes batches over.
//
// The numbers stand in a segment (wire::EventCode::kLoaderPart) and in files: never reuse one.
// Thread safety: constants.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stepscope {

enum class LoaderPart : uint8_t {
  // where batches are made: a worker, or the training process with num_workers=0
  kFetch,         // the whole of making batches; all below but kWait and kPickle is in it
  kDetailFetch,   // of the batches whose parts were looked at: short ones are sampled
  kCollate,       // collate_fn
  kDecode,        // Pillow, OpenCV, torchvision.io
  kOpen,          // open()
  kWait,          // between two batches: nothing to do, the index queue is empty
  kPickle,        // turning batches into bytes for the training process, on a thread of its own
  kCpu,           // processor time of the process, all threads
  kCoreWait,      // the main thread could have run, but had no core
  kOtherThreads,  // transforms and decoding on threads other than the one that fetches
  kLongestBatch,  // ns, the longest since the last flush
  kPickleBytes,   // count, not ns
  kOpens,         // files opened; count
  kFaults,        // page faults; count
  kMajorFaults,   // those that read from storage; count
  // where batches are taken over: the training process of a loader with workers
  kReceive,   // reading a batch's bytes from the pipe
  kUnpickle,  // making objects of them
  kPin,       // copying into pinned memory, on a thread of its own
  // of workers again
  kSharedBytes,  // tensors handed over through shared memory; count
  kAskedWhich,   // workers that called get_worker_info(), which is how a dataset learns its part
  kCount,
};
inline constexpr size_t kLoaderParts = static_cast<size_t>(LoaderPart::kCount);
inline constexpr std::array<std::string_view, kLoaderParts> kLoaderPartNames = {
    "fetch",         "detail_fetch", "collate", "decode",       "open",
    "wait",          "pickle",       "cpu",     "core_wait",    "other_threads",
    "longest_batch", "pickle_bytes", "opens",   "faults",       "major_faults",
    "receive",       "unpickle",     "pin",     "shared_bytes", "asked_which"};

// How a loader is set up; bits of wire::EventCode::kLoader.
enum LoaderFlags : uint8_t {
  kLoaderPersistent = 1u << 0,  // persistent_workers
  kLoaderPinned = 1u << 1,      // pin_memory, and there is an accelerator to pin for
  kLoaderIterable = 1u << 2,    // an IterableDataset
  kLoaderOwnEpoch = 1u << 3,    // the dataset keeps its epoch in itself: set_epoch, or .epoch
  kLoaderAnyOrder = 1u << 4,    // in_order=False
  kLoaderSpawned = 1u << 5,     // workers are spawned or from a fork server, not forked
  kLoaderHandles = 1u << 6,     // the dataset holds open file handles
  kLoaderSplits = 1u << 7,      // workers are told their part in another way than get_worker_info
};

}  // namespace stepscope
