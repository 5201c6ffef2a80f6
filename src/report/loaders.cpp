#include "report/loaders.h"

namespace stepscope::report {

std::vector<LoaderRow> loader_rows(const RunHistory& run) {
  std::vector<LoaderRow> rows;
  for (const LoaderHistory& loader : run.loaders) {
    auto kept = std::make_shared<const LoaderHistory>(loader);
    const bool training = engine::training_loader(run, loader.rank) == &loader;
    rows.push_back({kept, engine::LoaderView(*kept), training});
  }
  return rows;
}

}  // namespace stepscope::report
