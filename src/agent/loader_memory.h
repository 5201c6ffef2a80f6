// Which data loaders feed training, learned from what follows their fetches.
//
//   unknown    counts as training until it is known better
//   training   a backward followed its fetch
//   forgotten  its batches led to no backward; one that follows its fetch makes it training again
//
// With another loader at work (training, and fetched since the last backward), one backward is not
// enough to make a loader training: a peek into it would do. Two in a row are.
//
// Thread safety: none, one owner. Bounded: a table of kMaxLoaders, the longest unused gives way.
// Invariant: fetches inside a validation never change a loader's state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stepscope::agent {

enum class LoaderState : uint8_t { kUnknown, kTraining, kForgotten };

struct Loader {
  uint64_t id = 0;
  LoaderState state = LoaderState::kUnknown;
  bool samples_unknown = false;        // of a batch of this step
  bool sized = false;                  // the samples of its last batch were known
  bool backward_in_iteration = false;  // since its iterator was made
  bool ahead =
      false;          // in this iteration a batch was fetched while another waited for its backward
  uint8_t votes = 0;  // backwards in a row that followed its fetch while another was at work
  // since the first, or since the last backward that followed one
  uint32_t fetches_without_backward = 0;
  uint32_t fetches_since_backward = 0;  // 0: not fetched since the last backward
  uint32_t step_fetches = 0;            // in the step in progress, the exhausting one included
  uint32_t batches = 0;                 // in the step in progress
  uint64_t samples = 0;                 // in these
  uint32_t validation = 0;              // number of the validation that fetched it last
  uint32_t iteration_validation = 0;    // of the one that its iterator was made in; 0: in none
  uint64_t last_use = 0;
};

struct BatchTotals {
  uint32_t batches = 0;
  uint64_t samples = 0;
  bool samples_known = false;  // also when a step only met the loader's end: then they are 0
};

class LoaderMemory {
 public:
  static constexpr size_t kMaxLoaders = 32;

  Loader& find(uint64_t id);
  void iter_begun(Loader& loader) { loader.backward_in_iteration = loader.ahead = false; }
  // For a fetch with gradients on, outside validation: first whether the loader is to be forgotten,
  // then the fetch.
  void review(Loader& loader);
  void fetched(Loader& loader);
  static void add_batch(Loader& loader, uint32_t batches, uint64_t samples, bool unknown);
  void exhausted(Loader& loader);  // outside validation
  void backward();
  void failed();                     // a forward raised: the iteration was training all the same
  void absorb(uint32_t validation);  // fetches of loaders not known as training were a validation's
  // at_forward: what was fetched just before may be what this forward works on.
  void step_closed(bool at_forward);
  bool training_fetch_in_step() const;
  // All that this step fetched was the end of loaders whose batches were used by then.
  bool only_ends_in_step() const;
  BatchTotals totals() const;  // of the step in progress, of those that feed training
  bool sane() const;           // of state from a file: no field leads outside

 private:
  std::array<Loader, kMaxLoaders> table_{};
  size_t count_ = 0;
  size_t last_found_ = 0;
  uint64_t uses_ = 0;
  uint64_t last_fetched_ = 0;  // id
};

}  // namespace stepscope::agent
