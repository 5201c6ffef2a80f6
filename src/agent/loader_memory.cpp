#include "agent/loader_memory.h"

#include "agent/sane.h"

namespace stepscope::agent {

Loader& LoaderMemory::find(uint64_t id) {
  ++uses_;
  if (last_found_ < count_ && table_[last_found_].id == id) {
    table_[last_found_].last_use = uses_;
    return table_[last_found_];
  }
  size_t oldest = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (table_[i].id == id) {
      last_found_ = i;
      table_[i].last_use = uses_;
      return table_[i];
    }
    if (table_[i].last_use < table_[oldest].last_use) oldest = i;
  }
  last_found_ = count_ < kMaxLoaders ? count_++ : oldest;
  table_[last_found_] = Loader{.id = id, .last_use = uses_};
  return table_[last_found_];
}

void LoaderMemory::review(Loader& loader) {
  if (loader.state != LoaderState::kUnknown || loader.fetches_without_backward < 2) return;
  for (size_t i = 0; i < count_; ++i)
    if (table_[i].state == LoaderState::kTraining) loader.state = LoaderState::kForgotten;
}

void LoaderMemory::fetched(Loader& loader) {
  ++loader.fetches_without_backward;
  ++loader.fetches_since_backward;
  ++loader.step_fetches;
  last_fetched_ = loader.id;
}

void LoaderMemory::add_batch(Loader& loader, uint32_t batches, uint64_t samples, bool unknown) {
  loader.batches += batches;
  loader.samples += samples;
  loader.samples_unknown |= unknown;
  loader.sized = !unknown;
  loader.ahead |= loader.fetches_since_backward > 1;
}

void LoaderMemory::exhausted(Loader& loader) {
  if (!loader.backward_in_iteration) loader.state = LoaderState::kForgotten;
  // A backward that comes now uses other data, or all of it, kept: it says nothing about this
  // loader's next fetch, and this loader is not at work.
  loader.fetches_since_backward = 0;
  loader.backward_in_iteration = false;
}

void LoaderMemory::backward() {
  bool another_at_work = false;
  for (size_t i = 0; i < count_; ++i)
    another_at_work |=
        table_[i].state == LoaderState::kTraining && table_[i].fetches_since_backward > 0;
  for (size_t i = 0; i < count_; ++i) {
    Loader& l = table_[i];
    l.backward_in_iteration = true;
    const bool followed =
        l.fetches_since_backward == 1 || (l.fetches_since_backward > 0 && l.id == last_fetched_);
    l.fetches_since_backward = 0;
    if (!followed) {
      l.votes = 0;
      continue;
    }
    l.fetches_without_backward = 0;
    if (l.state == LoaderState::kTraining) continue;
    if (another_at_work && ++l.votes < 2) continue;
    l.state = LoaderState::kTraining;
    l.votes = 0;
  }
}

void LoaderMemory::failed() {
  for (size_t i = 0; i < count_; ++i) table_[i].backward_in_iteration = true;
}

void LoaderMemory::absorb(uint32_t validation) {
  for (size_t i = 0; i < count_; ++i) {
    Loader& l = table_[i];
    if (l.state == LoaderState::kTraining || l.fetches_since_backward == 0) continue;
    l.validation = validation;
    l.fetches_since_backward = l.step_fetches = l.batches = 0;
    l.samples = 0;
  }
}

void LoaderMemory::step_closed(bool at_forward) {
  for (size_t i = 0; i < count_; ++i) {
    Loader& l = table_[i];
    l.step_fetches = l.batches = 0;
    l.samples = 0;
    l.samples_unknown = false;
    if (l.state == LoaderState::kForgotten && !at_forward) l.fetches_since_backward = 0;
  }
}

bool LoaderMemory::training_fetch_in_step() const {
  for (size_t i = 0; i < count_; ++i)
    if (table_[i].step_fetches > 0 && table_[i].state != LoaderState::kForgotten) return true;
  return false;
}

bool LoaderMemory::only_ends_in_step() const {
  for (size_t i = 0; i < count_; ++i) {
    const Loader& l = table_[i];
    if (l.step_fetches > 0 && l.state != LoaderState::kForgotten && (l.batches > 0 || l.ahead))
      return false;
  }
  return true;
}

BatchTotals LoaderMemory::totals() const {
  for (const LoaderState state : {LoaderState::kTraining, LoaderState::kUnknown}) {
    BatchTotals totals;
    bool fetched = false, unknown = false;
    for (size_t i = 0; i < count_; ++i) {
      const Loader& l = table_[i];
      if (l.state != state || l.step_fetches == 0) continue;
      fetched = true;
      totals.batches += l.batches;
      totals.samples += l.samples;
      unknown |= l.samples_unknown || !l.sized;
    }
    totals.samples_known = !unknown;
    if (fetched) return totals;
  }
  return {};
}

bool LoaderMemory::sane() const {
  if (count_ > kMaxLoaders) return false;
  for (const Loader& l : table_)
    if (l.state > LoaderState::kForgotten ||
        !are_bools(l.samples_unknown, l.sized, l.backward_in_iteration, l.ahead))
      return false;
  return true;
}

}  // namespace stepscope::agent
