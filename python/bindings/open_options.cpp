#include "open_options.h"

#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace stepscope::bindings {

recorder::OpenOptions open_options(const nb::kwargs& given) {
  const auto text = [&](const char* name) { return nb::cast<std::string>(given[name]); };
  const auto whole = [&](const char* name) { return nb::cast<int>(given[name]); };
  recorder::OpenOptions options;
  options.folder = text("folder");
  options.segment_bytes = nb::cast<size_t>(given["segment_bytes"]);
  options.shm_share = nb::cast<double>(given["shm_share"]);
  options.rank = whole("rank");
  options.local_rank = whole("local_rank");
  options.world_size = whole("world_size");
  options.local_world_size = whole("local_world_size");
  options.node_rank = whole("node_rank");
  options.attempt = whole("attempt");
  options.run_id = text("run_id");
  options.python_version = text("python_version");
  options.torch_version = text("torch_version");
  options.executable = text("executable");
  return options;
}

void raise_unless(const Status& opened) {
  if (!opened) throw std::runtime_error(opened.error().message + "\nhint: " + opened.error().hint);
}

}  // namespace stepscope::bindings
