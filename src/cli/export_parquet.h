// Parquet through pyarrow: the rows of the CSV go to the Python that stepscope was installed for (python/stepscope/
// _parquet.py), which writes the file.
//
//   this process -- rows as CSV --> pipe --> python, pyarrow -- Parquet --> the output's descriptor
//
// Thread safety: none: ignores SIGPIPE for the process while it writes.
#pragma once

#include "base/result.h"
#include "exporter/output.h"
#include "exporter/table.h"

namespace stepscope::cli {

// What a start in Python, or its end, failed with. An Error without a message: Python has said it already.
Status write_parquet(const exporter::Table& table, exporter::Output& out);

}  // namespace stepscope::cli
