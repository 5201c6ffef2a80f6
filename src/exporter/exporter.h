// A run in the formats of other tools; as a table: table.h. A writer streams: what it holds in memory does not grow with
// the run's length beyond the history itself. A run without a step is a file without rows.
//
// Thread safety: pure but for the Output. Invariants: numbers are those of the view-model (report) or of the steps as
// they are kept; names of strangers are escaped as the format wants it; what was not measured is absent, never 0.
#pragma once

#include <string>
#include <vector>

#include "exporter/output.h"
#include "model/finding.h"
#include "model/history.h"

namespace stepscope::exporter {

// Trace Event JSON, for Perfetto and chrome://tracing: a process a rank, steps with their phases in them.
void write_perfetto(const RunHistory& run, const std::vector<Finding>& findings, Output& out);

// OTLP's JSON, an ExportMetricsServiceRequest a line: first what the metrics are at the run's end, then its steps.
void write_otlp(const RunHistory& run, const std::vector<Finding>& findings, Output& out);

// One file that holds the page and the run's views. An Error where page_folder holds no page.
Status write_html(const RunHistory& run, const std::vector<Finding>& findings,
                  const std::string& page_folder, Output& out);

}  // namespace stepscope::exporter
