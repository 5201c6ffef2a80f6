// identify_stragglers for Python: diagnosis.md section 6.
#pragma once

#include <nanobind/nanobind.h>

namespace stepscope::bindings {

void bind_stragglers(nanobind::module_& m);

}  // namespace stepscope::bindings
