#include "stragglers.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/identify_stragglers.h"

namespace nb = nanobind;

namespace stepscope::bindings {
namespace {

std::vector<int64_t> identify(const std::map<int64_t, std::vector<double>>& batch_times,
                              double multiplier, const std::string& method,
                              std::optional<int64_t> window) {
  engine::StragglerOptions options;
  options.threshold_multiplier = multiplier;
  options.method = method;
  options.window = window;
  const auto found = engine::identify_stragglers(batch_times, options);
  if (!found) throw nb::value_error(found.error().message.c_str());
  return *found;
}

}  // namespace

void bind_stragglers(nb::module_& m) {
  m.def("identify_stragglers", &identify, nb::arg("batch_times"), nb::arg("threshold_multiplier"),
        nb::arg("method"), nb::arg("window").none());
}

}  // namespace stepscope::bindings
