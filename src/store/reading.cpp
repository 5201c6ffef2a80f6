#include "store/reading.h"

#include <utility>

#include "store/read.h"
#include "store/schema.h"

namespace stepscope::store {

Result<Reading> Reading::open(const std::string& run_folder) {
  auto file = ReadOnly::open(run_folder);
  if (!file) return file.error();
  Reading reading(std::move(*file));
  Database& database = reading.file_.database();
  const Result<Content> content = identify(database);
  if (!content) return content.error();
  reading.run_.folder = run_folder;
  reading.run_.live = true;
  if (*content != Content::kRun) return reading;  // killed before its first commit
  // Ends with the connection.
  if (!database.run("BEGIN")) return database.take_error("read");
  auto run = read_history(database, run_folder, RawSteps::kNone);
  if (!run) return run.error();
  reading.run_ = std::move(*run);
  return reading;
}

Result<KeptList<StepSample>> Reading::steps(int32_t rank) {
  return read_steps(file_.database(), rank);
}

}  // namespace stepscope::store
