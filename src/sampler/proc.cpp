#include "sampler/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace stepscope::sampler {
namespace {

constexpr int kMaxCpus = 8192;
constexpr std::string_view kBlank = " \t\n";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return Error{path + ": " + std::generic_category().message(errno), ""};
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() < max_bytes) {
    const ssize_t n = read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error error{path + ": " + std::generic_category().message(errno), ""};
      close(fd);
      return error;
    }
    if (n == 0) break;
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  close(fd);
  if (text.size() > max_bytes) text.resize(max_bytes);
  return text;
}

std::string pid_file(const std::string& root, int32_t pid, const char* name) {
  return root + "/proc/" + std::to_string(pid) + "/" + name;
}

std::optional<int64_t> parse_int(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr int64_t kExitingFlag = 0x4;  // PF_EXITING of include/linux/sched.h

std::optional<ProcStat> parse_stat(std::string_view text) {
  const size_t name_end = text.rfind(')');  // the name may hold brackets and blanks
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  ProcStat stat;
  bool whole = false;
  for (int field = 3; field <= 42; ++field) {  // numbers of proc(5)
    text = trim(text);
    if (text.empty()) break;
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    if (field == 3) {
      stat.state = word[0];
      continue;
    }
    const bool wanted = field == 4 || field == 9 || field == 10 || field == 12 ||
                        (field >= 14 && field <= 17) || field == 22 || field == 42;
    if (!wanted) continue;
    const auto value = parse_int(word);
    if (!value) return std::nullopt;
    if (field == 4) stat.ppid = static_cast<int32_t>(*value);
    if (field == 9) stat.exiting = (*value & kExitingFlag) != 0;
    if (field == 10) stat.minor_faults = *value;
    if (field == 12) stat.major_faults = *value;
    if (field >= 14 && field <= 17) stat.cpu_ticks += *value;
    if (field == 22) {
      stat.start_ticks = *value;
      whole = true;  // what all need
    }
    if (field == 42) stat.disk_wait_ticks = *value;
  }
  return whole ? std::optional(stat) : std::nullopt;
}

std::optional<ProcStat> read_stat(const std::string& root, int32_t pid) {
  const auto text = read_file(pid_file(root, pid, "stat"), kStatBytes);
  return text ? parse_stat(*text) : std::nullopt;
}

bool lives(const std::string& root, int32_t pid) {
  const auto stat = read_stat(root, pid);
  return stat && !dead(*stat);
}

std::optional<std::set<int>> parse_cpu_list(std::string_view text) {
  text = trim(text);
  std::set<int> cpus;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = part.find('-');
    const auto first = parse_int(part.substr(0, std::min(dash, part.size())));
    const auto last = dash == std::string_view::npos ? first : parse_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) return std::nullopt;
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(static_cast<int>(cpu));
  }
  if (cpus.empty()) return std::nullopt;
  return cpus;
}

std::optional<std::string> line_of(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(key)) {
      std::string_view rest = line.substr(key.size());
      if (rest.starts_with(':')) rest.remove_prefix(1);
      if (rest.empty() || kBlank.find(rest[0]) != std::string_view::npos)
        return std::string(trim(rest));
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<int64_t> value_of(std::string_view text, std::string_view key) {
  const auto line = line_of(text, key);
  if (!line) return std::nullopt;
  return parse_int(line->substr(0, std::min(line->find(' '), line->size())));
}

}  // namespace stepscope::sampler
