#include "ring/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "model/phase.h"

namespace stepscope::ring {
namespace {

constexpr size_t kChunk = 256;  // records a read: 12 KB of stack
constexpr off_t kMaxSegmentBytes = off_t{1} << 30;

// A record, and the header lines, as bytes from a file: the same layout without atomics.
struct RecordBytes {
  uint64_t seq;
  int64_t t0_ns, t1_ns;
  uint32_t step;
  uint8_t kind, phase, flags, device;
  uint64_t a, b;
};
static_assert(sizeof(RecordBytes) == sizeof(wire::Record));
static_assert(offsetof(RecordBytes, a) == offsetof(wire::Record, a));

struct TailPair {
  uint64_t tail, check;
};
static_assert(offsetof(wire::ReaderLine, tail_check) == offsetof(wire::ReaderLine, tail) + 8);

constexpr size_t kTail = offsetof(wire::SegmentHead, reader) + offsetof(wire::ReaderLine, tail);
constexpr size_t kHead = offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, head);

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
bool plausible(RecordValue& r) {
  if (r.t0_ns < 0 || r.t1_ns < r.t0_ns) return false;
  constexpr uint8_t kSpanFlags = wire::kSpanRaised | wire::kSpanExhausted | wire::kSpanEpochStart |
                                 wire::kSpanNotTraining | wire::kSpanEvalForward;
  constexpr uint8_t kStepFlags = wire::kStepFailed | wire::kStepExplicit | wire::kStepProfiled |
                                 wire::kStepCompiled | wire::kStepPaused;
  switch (r.kind) {
    case wire::RecordKind::kSpan:
      r.flags &= kSpanFlags;
      return known_phase(r.phase);
    case wire::RecordKind::kStep:
      r.flags &= kStepFlags;
      return true;
    case wire::RecordKind::kSync:
      r.flags = 0;
      return true;
    case wire::RecordKind::kMark:
      r.flags = 0;
      return r.phase >= static_cast<uint8_t>(wire::MarkCode::kOptimizerSkipped) &&
             r.phase <= static_cast<uint8_t>(wire::MarkCode::kValidationBegin);
    case wire::RecordKind::kNone:
      break;
  }
  return false;
}

RecordValue copy_of(const RecordBytes& bytes, uint64_t index) {
  return {.index = index,
          .t0_ns = bytes.t0_ns,
          .t1_ns = bytes.t1_ns,
          .step = bytes.step,
          .kind = static_cast<wire::RecordKind>(bytes.kind),
          .phase = bytes.phase,
          .flags = bytes.flags,
          .device = bytes.device,
          .a = bytes.a,
          .b = bytes.b};
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
  if (id.STEPSCOPE_FIELD(uint32_t, record_bytes) != sizeof(wire::Record) ||
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

// Read until it stands still, so that phase and since belong together; a writer that never rests
// gets the last look.
NowValue Reader::now() const {
  constexpr size_t kOffset = offsetof(wire::SegmentHead, now);
  struct Line {
    uint64_t phase_and_step;
    int64_t since_ns;
    bool operator==(const Line&) const = default;
  };
  Line last{}, line{};
  if (!read_at(kOffset, &line, sizeof(line))) line = {};
  for (int attempt = 0; attempt < 4 && line != last; ++attempt) {
    last = line;
    if (!read_at(kOffset, &line, sizeof(line))) line = {};
  }
  const auto phase = static_cast<uint8_t>(line.phase_and_step >> 56);
  return {.phase = known_phase(phase) ? phase : static_cast<uint8_t>(Phase::kOther),
          .step = line.phase_and_step & ((uint64_t{1} << 56) - 1),
          .since_ns = std::max<int64_t>(line.since_ns, 0)};
}

uint64_t Reader::head() const { return word(kHead); }
uint64_t Reader::tail() const { return window().begin; }
uint64_t Reader::dropped() const {
  return word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, dropped));
}
uint64_t Reader::cost_ns() const {
  return word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, cost_ns));
}
uint64_t Reader::cost_calls() const {
  return word(offsetof(wire::SegmentHead, writer) + offsetof(wire::WriterLine, cost_calls));
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

// [begin, end) of the records that the ring can still hold. A tail that does not fit counts as
// unknown.
Reader::Window Reader::window() const {
  TailPair pair{};
  if (!read_at(kTail, &pair, sizeof(pair))) pair = {};
  const uint64_t head = word(kHead);
  const uint64_t oldest = head > capacity_ ? head - capacity_ : 0;
  const bool fits = pair.check == ~pair.tail && pair.tail <= head && pair.tail >= oldest;
  return {fits ? pair.tail : oldest, head};
}

Reader::Drained Reader::drain(uint64_t from, std::span<RecordValue> out, bool writer_dead) const {
  const Window window = this->window();
  Drained done{0, std::max(from, window.begin), 0};
  std::array<RecordBytes, kChunk> chunk;
  while (done.count < out.size() && done.next_index < window.end) {
    const uint64_t slot = done.next_index % capacity_;
    const size_t want = static_cast<size_t>(std::min<uint64_t>(
        {kChunk, window.end - done.next_index, capacity_ - slot, out.size() - done.count}));
    const size_t offset = wire::kRingOffset + slot * sizeof(wire::Record);
    if (!read_at(offset, chunk.data(), want * sizeof(wire::Record))) break;
    size_t ready = 0;
    while (ready < want && (writer_dead || chunk[ready].seq == done.next_index + ready + 1))
      ++ready;
    if (ready == 0) break;
    // The first read told which records are published; only a read that begins after that is sure
    // to have all of them.
    order_reads();
    if (!read_at(offset, chunk.data(), ready * sizeof(wire::Record))) break;
    for (size_t i = 0; i < ready; ++i, ++done.next_index) {
      RecordValue value = copy_of(chunk[i], done.next_index);
      if (chunk[i].seq == done.next_index + 1 && plausible(value))
        out[done.count++] = value;
      else
        ++done.lost;
    }
  }
  return done;
}

void Reader::release(uint64_t tail) {
  const Window window = this->window();
  tail = std::clamp(tail, window.begin, window.end);
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
