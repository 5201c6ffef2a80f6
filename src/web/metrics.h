// The metrics (exporter/metrics.h) as monitoring systems take them over the network.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exporter/metrics.h"

namespace stepscope::web {

inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
std::string prometheus_text(const std::vector<exporter::Family>& families);

// A remote-write 1.0 request: protobuf in a Snappy block.
std::string remote_write(const std::vector<exporter::Family>& families, int64_t time_ms);

// An ExportMetricsServiceRequest of OTLP/HTTP. Counters began at start_ns.
std::string otlp(const std::vector<exporter::Family>& families, int64_t start_ns, int64_t time_ns);

}  // namespace stepscope::web
