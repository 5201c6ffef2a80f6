#include "cli/loader_facts.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/file.h"
#include "base/text.h"

namespace stepscope::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMostLoaders = 1000;
constexpr int kMostNumber = 1'000'000;

int64_t number(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_int64() ? std::max<int64_t>(0, value->get_int64()) : 0;
}

int small(const json::object& object, const char* key) {
  return static_cast<int>(std::min<int64_t>(number(object, key), kMostNumber));
}

bool flag(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string word(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string()
             ? printable(std::string_view(value->get_string().data(), value->get_string().size()),
                         120)
             : "";
}

LoaderFacts facts(const json::object& line) {
  LoaderFacts out;
  out.settings = tuner::clean({.num_workers = small(line, "num_workers"),
                               .prefetch_factor = small(line, "prefetch_factor"),
                               .persistent_workers = flag(line, "persistent_workers"),
                               .pin_memory = flag(line, "pin_memory"),
                               .multiprocessing_context = word(line, "multiprocessing_context")});
  out.dataset = word(line, "dataset");
  out.iterable = flag(line, "iterable");
  out.shares_out = flag(line, "shares_out");
  out.keeps_epoch = flag(line, "keeps_epoch");
  out.batch_wise = flag(line, "batch_wise");
  out.threaded = flag(line, "threaded");
  out.steps_per_epoch = number(line, "steps_per_epoch");
  return out;
}

}  // namespace

LoaderFacts parse_loader(std::string_view object) {
  json::error_code error;
  const json::value value = json::parse(json::string_view(object.data(), object.size()), error);
  return error || !value.is_object() ? LoaderFacts{} : facts(value.get_object());
}

std::map<int32_t, ProcessFacts> parse_loader_facts(std::string_view lines) {
  std::map<int32_t, ProcessFacts> out;
  for (const std::string_view text : split(lines, '\n')) {
    json::error_code error;
    const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
    if (error || !value.is_object()) continue;
    const json::object& line = value.get_object();
    const int64_t pid = number(line, "pid");
    if (pid <= 0 || pid > INT32_MAX) continue;
    ProcessFacts& process = out[static_cast<int32_t>(pid)];
    if (const int64_t bytes = number(line, "batch_bytes"); bytes > process.batch_bytes) {
      process.batch_bytes = bytes;
      process.batch_tensors = number(line, "tensors");
    }
    const int loader = small(line, "number");
    if (loader > 0 && line.contains("num_workers") && process.loaders.size() < kMostLoaders)
      process.loaders[loader] = facts(line);
  }
  return out;
}

void LoaderVotes::poll(const std::string& segment_folder) {
  std::array<ring::EventValue, 512> events;
  for (const std::string& name : list_folder(segment_folder)) {
    if (!name.starts_with("seg-")) continue;
    auto found = sources_.find(name);
    if (found == sources_.end()) {
      auto reader = ring::Reader::open(segment_folder + "/" + name);
      if (!reader) continue;
      const ring::IdentityValue identity = reader->identity();
      if (identity.role == wire::Role::kWorker) continue;
      found =
          sources_.emplace(name, Source{.reader = std::move(*reader), .pid = identity.pid}).first;
    }
    Source& source = found->second;
    while (true) {
      const auto drained = source.reader.drain(source.next, events);
      source.next = drained.next_index;
      for (size_t i = 0; i < drained.count; ++i) {
        const ring::EventValue& event = events[i];
        if (event.code == wire::EventCode::kFetchBegin && event.has(wire::kGradOn) &&
            event.a <= kMostNumber && source.fetched.size() < kMostLoaders) {
          source.fetched.insert(static_cast<int>(event.a));
        } else if (event.code == wire::EventCode::kBackwardBegin) {
          for (const int loader : source.fetched) ++source.votes[loader];
          source.fetched.clear();
        }
      }
      if (drained.count < events.size()) break;
    }
  }
}

std::vector<int> LoaderVotes::training(int32_t pid) const {
  std::map<int, int64_t> votes;
  for (const auto& [name, source] : sources_)
    if (source.pid == pid)
      for (const auto& [loader, count] : source.votes) votes[loader] += count;
  int64_t most = 0;
  for (const auto& [loader, count] : votes) most = std::max(most, count);
  std::vector<int> out;
  for (const auto& [loader, count] : votes)
    if (2 * count >= most) out.push_back(loader);
  return out;
}

}  // namespace stepscope::cli
