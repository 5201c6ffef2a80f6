// Metrics as text and as protobuf. The few messages are written by their public field numbers
// (prometheus/prompb/remote.proto, types.proto; opentelemetry metrics.proto), which is less than
// two generated libraries.
#include <algorithm>
#include <bit>
#include <charconv>

#include "base/version.h"
#include "web/metrics.h"
#include "web/protobuf.h"

namespace stepscope::web {
using exporter::Family;
using exporter::Sample;

namespace {

std::string number_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, error == std::errc{} ? end : text};
}

// In a label's value a quote too.
std::string escaped(std::string_view text, bool quote) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (c == '"' && quote)) out += '\\';
    out += c;
  }
  return out;
}

std::string key_value(std::string_view key, std::string_view value) {
  return protobuf::text(1, key) + protobuf::text(2, protobuf::text(1, value));
}

constexpr int kCumulative = 2;

std::string data_points(const Family& family, int64_t start_ns, int64_t time_ns) {
  std::string out;
  for (const Sample& sample : family.samples) {
    std::string point;
    if (family.counter) point += protobuf::fixed64(2, static_cast<uint64_t>(start_ns));
    point += protobuf::fixed64(3, static_cast<uint64_t>(time_ns));
    point += protobuf::fixed64(4, std::bit_cast<uint64_t>(sample.value));
    for (const auto& [name, value] : sample.labels)
      point += protobuf::text(7, key_value(name, value));
    out += protobuf::text(1, point);
  }
  return out;
}

}  // namespace

std::string prometheus_text(const std::vector<Family>& families) {
  std::string out;
  for (const Family& family : families) {
    out += "# HELP " + family.name + " " + escaped(family.help, false) + "\n";
    out += "# TYPE " + family.name + (family.counter ? " counter\n" : " gauge\n");
    for (const Sample& sample : family.samples) {
      out += family.name;
      for (size_t i = 0; i < sample.labels.size(); ++i)
        out += (i == 0 ? "{" : ",") + sample.labels[i].first + "=\"" +
               escaped(sample.labels[i].second, true) + "\"";
      out += sample.labels.empty() ? " " : "} ";
      out += number_text(sample.value) + "\n";
    }
  }
  return out;
}

std::string remote_write(const std::vector<Family>& families, int64_t time_ms) {
  std::string request;
  for (const Family& family : families)
    for (const Sample& sample : family.samples) {
      auto labels = sample.labels;
      labels.emplace_back("__name__", family.name);
      std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
      std::sort(labels.begin(), labels.end());
      std::string series;
      for (const auto& [name, value] : labels)
        series += protobuf::text(1, protobuf::text(1, name) + protobuf::text(2, value));
      series += protobuf::text(2, protobuf::fixed64(1, std::bit_cast<uint64_t>(sample.value)) +
                                      protobuf::varint(2, static_cast<uint64_t>(time_ms)));
      request += protobuf::text(1, series);
    }
  return protobuf::snappy_block(request);
}

std::string otlp(const std::vector<Family>& families, int64_t start_ns, int64_t time_ns) {
  std::string scope =
      protobuf::text(1, protobuf::text(1, "stepscope") + protobuf::text(2, kVersion));
  for (const Family& family : families) {
    std::string metric = protobuf::text(1, family.name) + protobuf::text(2, family.help) +
                         protobuf::text(3, family.unit);
    std::string points = data_points(family, start_ns, time_ns);
    if (family.counter)
      metric += protobuf::text(
          7, points + protobuf::varint(2, kCumulative) + protobuf::varint(3, 1 /* monotonic */));
    else
      metric += protobuf::text(5, points);
    scope += protobuf::text(2, metric);
  }
  const std::string resource = protobuf::text(1, key_value("service.name", "stepscope"));
  return protobuf::text(1, protobuf::text(1, resource) + protobuf::text(2, scope));
}

}  // namespace stepscope::web
