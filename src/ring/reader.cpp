#include "ring/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "model/phase.h"

namespace stepscope::ring {
namespace {

constexpr size_t kChunk = 256;  // events a read: 8 KB of stack
constexpr off_t kMaxSegmentBytes = off_t{1} << 30;

// An event, and the header lines, as bytes from a file: the same layout without atomics.
struct EventBytes {
  uint64_t seq;
  int64_t t_ns;
  uint64_t a;
  uint8_t code, phase, flags, device;
  uint32_t missing;
};
static_assert(sizeof(EventBytes) == sizeof(wire::Event));
static_assert(offsetof(EventBytes, code) == offsetof(wire::Event, what));
static_assert(std::endian::native == std::endian::little);

struct TailPair {
  uint64_t tail, check;
};
static_assert(offsetof(wire::ReaderLine, tail_check) == offsetof(wire::ReaderLine, tail) + 8);

constexpr size_t kTail = offsetof(wire::SegmentHead, reader) + offsetof(wire::ReaderLine, tail);

struct IdentityBytes {
  alignas(wire::Identity) std::array<char, sizeof(wire::Identity)> bytes{};
  template <typename T>
  T get(size_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  }
  std::string text(size_t offset, size_t size) const {
    const char* begin = bytes.data() + offset;
    return printable(std::string_view(begin, strnlen(begin, size)));
  }
};
#define STEPSCOPE_FIELD(type, field) get<type>(offsetof(wire::Identity, field))
#define STEPSCOPE_TEXT(field) text(offsetof(wire::Identity, field), sizeof(wire::Identity::field))

// Reads of the file before this come before reads after it. ThreadSanitizer knows neither fences
// nor pread.
void order_reads() {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

bool known_phase(uint8_t phase) {
  return phase < kPhaseCount ||
         (phase >= kFirstUserPhase && phase < kFirstUserPhase + kMaxUserPhases);
}

// Whether the recorder could have written it; unknown flags are taken off.
bool plausible(EventValue& e) {
  e.flags &= wire::kEveryEventFlag;
  const bool has_phase = e.code == wire::EventCode::kPhaseBegin ||
                         e.code == wire::EventCode::kPhaseEnd ||
                         e.code == wire::EventCode::kPhaseCancel;
  return e.t_ns >= 0 && e.code > wire::EventCode::kNone && e.code <= wire::EventCode::kLast &&
         (!has_phase || known_phase(e.phase));
}

EventValue copy_of(const EventBytes& bytes, uint64_t index) {
  return {.index = index,
          .t_ns = bytes.t_ns,
          .a = bytes.a,
          .code = static_cast<wire::EventCode>(bytes.code),
          .phase = bytes.phase,
          .flags = bytes.flags,
          .device = bytes.device,
          .missing = bytes.missing};
}

Error refused(const std::string& name, const std::string& why) {
  return Error{"cannot read the segment " + name + ": " + why, ""};
}

}  // namespace

Result<Reader> Reader::open(const std::string& path) {
  // O_NONBLOCK: a pipe of that name must not hold us up.
  const int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return refused(path, errno_text());
  return from_fd(fd, path);
}

Result<Reader> Reader::from_fd(int fd, const std::string& name) {
  Reader reader(fd, 0);
  struct stat st;
  if (fstat(fd, &st) != 0) return refused(name, errno_text());
  if (!S_ISREG(st.st_mode)) return refused(name, "not a regular file");
  if (st.st_size > kMaxSegmentBytes || wire::capacity_for(static_cast<size_t>(st.st_size)) == 0)
    return refused(name, "it has " + std::to_string(st.st_size) + " bytes");
  IdentityBytes id;
  if (!reader.read_at(0, id.bytes.data(), id.bytes.size()))
    return refused(name, "its header cannot be read");
  if (id.STEPSCOPE_FIELD(uint64_t, magic) != wire::kMagic)
    return refused(name, "it does not begin like a segment");
  if (const auto version = id.STEPSCOPE_FIELD(uint32_t, version); version != wire::kVersion)
    return refused(name, "version " + std::to_string(version) + ", this program reads version " +
                             std::to_string(wire::kVersion));
  const uint64_t capacity = wire::capacity_for(static_cast<size_t>(st.st_size));
  if (id.STEPSCOPE_FIELD(uint32_t, event_bytes) != sizeof(wire::Event) ||
      id.STEPSCOPE_FIELD(uint64_t, segment_bytes) != static_cast<uint64_t>(st.st_size) ||
      id.STEPSCOPE_FIELD(uint64_t, capacity) != capacity)
    return refused(name, "its sizes do not fit its " + std::to_string(st.st_size) + " bytes");
  reader.capacity_ = capacity;
  return reader;
}

Reader::Reader(Reader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), capacity_(other.capacity_) {}

Reader& Reader::operator=(Reader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

Reader::~Reader() {
  if (fd_ >= 0) ::close(fd_);
}

bool Reader::read_at(size_t offset, void* to, size_t bytes) const {
  return pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// A write that fails (cut file, full tmpfs) changes nothing for us: the writer then drops, and
// counts.
void Reader::write_at(size_t offset, const void* from, size_t bytes) {
  [[maybe_unused]] const ssize_t written = pwrite(fd_, from, bytes, static_cast<off_t>(offset));
}

uint64_t Reader::word(size_t offset) const {
  uint64_t value = 0;
  return read_at(offset, &value, sizeof(value)) ? value : 0;
}

IdentityValue Reader::identity() const {
  IdentityBytes id;
  if (!read_at(0, id.bytes.data(), id.bytes.size())) id.bytes = {};
  IdentityValue value{};
  value.nonce = id.STEPSCOPE_FIELD(uint64_t, nonce);
  value.pid_start_ticks = id.STEPSCOPE_FIELD(int64_t, pid_start_ticks);
  value.mono_ns = id.STEPSCOPE_FIELD(int64_t, mono_ns);
  value.wall_ns = id.STEPSCOPE_FIELD(int64_t, wall_ns);
  value.pid = id.STEPSCOPE_FIELD(int32_t, pid);
  const auto role = id.STEPSCOPE_FIELD(uint8_t, role);
  value.role = role <= static_cast<uint8_t>(wire::Role::kWorker) ? static_cast<wire::Role>(role)
                                                                 : wire::Role::kUnknown;
  value.world_size = std::clamp(id.STEPSCOPE_FIELD(int32_t, world_size), 1, 1 << 24);
  value.local_world_size =
      std::clamp(id.STEPSCOPE_FIELD(int32_t, local_world_size), 1, value.world_size);
  const auto below = [](int32_t v, int32_t end) { return v >= 0 && v < end ? v : -1; };
  value.rank = below(id.STEPSCOPE_FIELD(int32_t, rank), value.world_size);
  value.local_rank = below(id.STEPSCOPE_FIELD(int32_t, local_rank), value.world_size);
  value.node_rank = below(id.STEPSCOPE_FIELD(int32_t, node_rank), value.world_size);
  value.attempt = std::max(id.STEPSCOPE_FIELD(int32_t, attempt), 0);
  value.facts = id.STEPSCOPE_FIELD(uint32_t, facts);
  value.node = id.STEPSCOPE_TEXT(node);
  value.run_id = id.STEPSCOPE_TEXT(run_id);
  value.python_version = id.STEPSCOPE_TEXT(python_version);
  value.torch_version = id.STEPSCOPE_TEXT(torch_version);
  value.executable = id.STEPSCOPE_TEXT(executable);
  return value;
}

uint64_t Reader::tail() const {
  TailPair pair{};
  if (!read_at(kTail, &pair, sizeof(pair))) return 0;
  return pair.check == ~pair.tail ? pair.tail : 0;
}
uint64_t Reader::dropped() const {
  return word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, dropped));
}
int64_t Reader::ready_ns() const {
  return static_cast<int64_t>(
      word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, ready_ns)));
}
uint64_t Reader::cost_ns() const {
  return word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, cost_ns));
}
uint64_t Reader::cost_calls() const {
  return word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, cost_calls));
}

std::optional<GroupValue> Reader::group(uint32_t number) const {
  using Table = wire::GroupTable;
  uint32_t count = 0;
  GroupValue value;
  if (number == 0 || number > wire::kMaxGroups ||
      !read_at(wire::kGroupTableOffset, &count, sizeof(count)) || number > count)
    return std::nullopt;
  const size_t entry =
      wire::kGroupTableOffset + offsetof(Table, groups) + (number - 1) * sizeof(Table::Group);
  if (!read_at(entry + offsetof(Table::Group, id), &value.id, sizeof(value.id)) ||
      !read_at(entry + offsetof(Table::Group, members), &value.members, sizeof(value.members)) ||
      value.id == 0 || value.members < 2)
    return std::nullopt;
  return value;
}

std::string Reader::name(uint8_t user_phase) const {
  std::string fallback = "phase-" + std::to_string(user_phase);
  if (user_phase < kFirstUserPhase || user_phase >= kFirstUserPhase + kMaxUserPhases)
    return fallback;
  const size_t slot = user_phase - kFirstUserPhase;
  uint32_t count = 0;
  char bytes[wire::kNameBytes];
  if (!read_at(offsetof(wire::SegmentHead, names), &count, sizeof(count)) || slot >= count)
    return fallback;
  order_reads();
  if (!read_at(offsetof(wire::SegmentHead, names) + offsetof(wire::NameTable, names) +
                   slot * wire::kNameBytes,
               bytes, sizeof(bytes)))
    return fallback;
  const std::string name = printable(std::string_view(bytes, strnlen(bytes, sizeof(bytes))));
  return name.empty() ? fallback : name;
}

Reader::Drained Reader::drain(uint64_t from, std::span<EventValue> out) const {
  Drained done{0, from, 0};
  std::array<EventBytes, kChunk> chunk;
  for (uint64_t looked = 0; done.count < out.size() && looked < capacity_;) {
    const uint64_t slot = done.next_index % capacity_;
    const size_t want = static_cast<size_t>(
        std::min<uint64_t>({kChunk, capacity_ - slot, out.size() - done.count}));
    const size_t offset = wire::kRingOffset + slot * sizeof(wire::Event);
    if (!read_at(offset, chunk.data(), want * sizeof(wire::Event))) break;
    size_t ready = 0;
    while (ready < want && chunk[ready].seq == done.next_index + ready + 1) ++ready;
    if (ready == 0) break;
    // The first read told which events are published; only a read that begins after that is sure to
    // have all of them.
    order_reads();
    if (!read_at(offset, chunk.data(), ready * sizeof(wire::Event))) break;
    for (size_t i = 0; i < ready; ++i, ++done.next_index) {
      EventValue value = copy_of(chunk[i], done.next_index);
      if (chunk[i].seq == done.next_index + 1 && plausible(value))
        out[done.count++] = value;
      else
        ++done.lost;
    }
    if (ready < want) break;
    looked += ready;
  }
  return done;
}

std::optional<uint64_t> Reader::oldest(uint64_t from) const {
  std::optional<uint64_t> found;
  std::array<EventBytes, kChunk> chunk;
  for (uint64_t slot = 0; slot < capacity_; slot += kChunk) {
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kChunk, capacity_ - slot));
    const size_t offset = wire::kRingOffset + slot * sizeof(wire::Event);
    if (!read_at(offset, chunk.data(), want * sizeof(wire::Event))) break;
    for (size_t i = 0; i < want; ++i) {
      const uint64_t index = chunk[i].seq - 1;
      const bool in_its_slot = chunk[i].seq != 0 && index % capacity_ == slot + i;
      if (in_its_slot && index >= from && (!found || index < *found)) found = index;
    }
  }
  return found;
}

void Reader::release(uint64_t tail) {
  tail = std::max(tail, this->tail());
  const TailPair pair{tail, ~tail};
  write_at(kTail, &pair, sizeof(pair));
}

void Reader::beat(int64_t mono_ns) {
  write_at(offsetof(wire::SegmentHead, reader) + offsetof(wire::ReaderLine, heartbeat_ns), &mono_ns,
           sizeof(mono_ns));
}

void Reader::control(wire::Control word) {
  const auto value = static_cast<uint32_t>(word);
  write_at(offsetof(wire::SegmentHead, control), &value, sizeof(value));
}

}  // namespace stepscope::ring
