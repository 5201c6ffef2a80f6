// What a trial tells of the DataLoaders in it: what they are (from loaders.jsonl, which
// hooks/loader_settings.py writes), and which of them feed the training loop (from the events).
//
// A loader feeds it when its batches lead to a backward: between two backwards every loader that was
// fetched with gradients on gets a vote, and those with at least half of the most votes are it.
//
// Thread safety: one owner. Every byte read here is hostile: what is not of the expected kind is
// left out.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ring/reader.h"
#include "tuner/loader_settings.h"

namespace stepscope::cli {

struct LoaderFacts {
  tuner::LoaderSettings settings;
  std::string dataset;  // its type's name
  bool iterable = false;
  bool shares_out = true;       // an iterable one that asks which worker it is in
  bool keeps_epoch = false;     // in the dataset itself
  bool batch_wise = false;      // could be
  bool threaded = false;        // a library with threads of its own is loaded
  int64_t steps_per_epoch = 0;  // 0: not known
};
struct ProcessFacts {
  std::map<int, LoaderFacts> loaders;  // by number: in the order in which they were made, from 1
  int64_t batch_bytes = 0, batch_tensors = 0;  // of the largest first batch; 0: not known
};
LoaderFacts parse_loader(std::string_view object);  // one line of it; what is missing is preset
std::map<int32_t, ProcessFacts> parse_loader_facts(std::string_view lines);  // by pid

class LoaderVotes {
 public:
  void poll(const std::string& segment_folder);  // before the segments' events are released
  std::vector<int> training(int32_t pid) const;  // numbers, ascending; empty: none was seen

 private:
  struct Source {
    ring::Reader reader;
    int32_t pid = 0;
    uint64_t next = 0;
    std::set<int> fetched{};  // since the last backward
    std::map<int, int64_t> votes{};
  };
  std::map<std::string, Source> sources_;  // by file name
};

}  // namespace stepscope::cli
