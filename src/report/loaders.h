// The loaders of a run as rows of the view-model. Pure.
//
// Lifetime: a row keeps its own copy of the history, which its view points into.
#pragma once

#include <memory>
#include <vector>

#include "engine/loader_view.h"

namespace stepscope::report {

struct LoaderRow {
  std::shared_ptr<const LoaderHistory> history = std::make_shared<const LoaderHistory>();
  engine::LoaderView view{*history};
  bool training = false;  // the one that feeds training on its rank
};

std::vector<LoaderRow> loader_rows(const RunHistory& run);

}  // namespace stepscope::report
