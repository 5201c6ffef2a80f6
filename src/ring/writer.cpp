#include "ring/writer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "ring/segment_file.h"

namespace stepscope::ring {
namespace {

constexpr uint64_t kMostBack = uint64_t{1} << 20;  // events; further ahead no tail is believed

// Cut so that the last byte stays 0.
template <size_t N>
void put(char (&field)[N], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

void fill_identity(wire::Identity& id, size_t bytes, uint64_t nonce,
                   const SegmentOptions& options) {
  id.version = wire::kVersion;
  id.event_bytes = sizeof(wire::Event);
  id.segment_bytes = bytes;
  id.capacity = wire::capacity_for(bytes);
  id.nonce = nonce;
  const OwnProcess self = own_process();
  id.pid = self.pid;
  id.pid_start_ticks = self.start_ticks;
  id.mono_ns = monotonic_ns();
  id.wall_ns = wall_ns();
  id.role = options.role;
  id.rank.store(options.rank, std::memory_order_relaxed);
  id.local_rank.store(options.local_rank, std::memory_order_relaxed);
  id.world_size.store(options.world_size, std::memory_order_relaxed);
  id.local_world_size.store(options.local_world_size, std::memory_order_relaxed);
  id.node_rank.store(options.node_rank, std::memory_order_relaxed);
  id.attempt.store(options.attempt, std::memory_order_relaxed);
  char node[sizeof(id.node)] = {};
  const bool named = gethostname(node, sizeof(node) - 1) == 0 && node[0] != '\0';
  put(id.node, named ? node : "unknown");
  put(id.run_id, options.run_id);
  put(id.python_version, options.python_version);
  put(id.torch_version, options.torch_version);
  put(id.executable, options.executable);
  id.magic = wire::kMagic;
}

wire::SegmentHead* lay_out(void* memory, size_t bytes, uint64_t nonce,
                           const SegmentOptions& options) {
  auto* head = new (memory) wire::SegmentHead{};
  head->reader.tail_check.store(~uint64_t{0}, std::memory_order_relaxed);
  fill_identity(head->identity, bytes, nonce, options);
  return head;
}

}  // namespace

std::string segment_file_name(int32_t pid, uint64_t nonce) {
  char name[48];
  std::snprintf(name, sizeof(name), "seg-%d-%016llx", pid, static_cast<unsigned long long>(nonce));
  return name;
}

Result<Writer> Writer::over(void* memory, size_t bytes, const SegmentOptions& options) {
  if (wire::capacity_for(bytes) == 0)
    return Error{"a segment of " + std::to_string(bytes) + " bytes holds no event",
                 "use at least 64 KB: --set segment_kb=64"};
  Writer writer;
  writer.head_ = lay_out(memory, bytes, random_nonce(), options);
  writer.ring_ = reinterpret_cast<wire::Event*>(static_cast<char*>(memory) + wire::kRingOffset);
  writer.capacity_ = wire::capacity_for(bytes);
  return writer;
}

Result<Writer> Writer::create(const SegmentOptions& options) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (options.segment_bytes + page - 1) / page * page;
  const uint64_t nonce = random_nonce();
  auto file = SegmentFile::allocate(options.folder, segment_file_name(own_process().pid, nonce),
                                    bytes, options.shm_share);
  if (!file) return file.error();
  auto memory = file->map();
  if (!memory) return memory.error();
  auto writer = over(*memory, bytes, options);
  if (writer) writer->head_->identity.nonce = nonce;
  const Status named = writer ? file->give_name() : writer.error();
  if (named) return writer;
  munmap(*memory, bytes);
  return named.error();
}

// Once a lap, when the ring looked full, and for a writer without a segment. The agent writes tail
// and its complement; a pair that does not fit is a write under way, or nonsense. Acquire: what the
// agent read from a slot happens before it is written again.
bool Writer::make_room() noexcept {
  if (head_ == nullptr) return false;
  uint64_t index = get(index_), known = get(tail_);
  if (index - known >= capacity_) {
    const uint64_t tail = head_->reader.tail.load(std::memory_order_acquire);
    const uint64_t check = head_->reader.tail_check.load(std::memory_order_relaxed);
    const uint64_t ahead = tail - index;
    if (check == ~tail && ahead != 0 && ahead <= kMostBack) {
      // A thread that met another one inside write() has set our number back: go on from what was
      // read already.
      known = index = tail;
      put(index_, index);
    } else if (check == ~tail && tail - known <= index - known) {
      known = tail;
    }
    put(tail_, known);
  }
  const uint64_t lap = index - index % capacity_;
  const uint64_t free = capacity_ - std::min(index - known, capacity_);
  put(lap_, lap);
  put(span_, std::min(capacity_, index - lap + free));
  if (free > 0) return true;
  if (get(missing_) < UINT32_MAX) put(missing_, get(missing_) + 1);
  std::atomic<uint64_t>& dropped = head_->writer.dropped;  // nobody else writes it
  dropped.store(dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return false;
}

}  // namespace stepscope::ring
