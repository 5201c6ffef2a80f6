// The functions of stepscope._native that set the recording of loading up: once a process or once
// an epoch, from python/stepscope/hooks/loading.py.
#pragma once

#include <nanobind/nanobind.h>

namespace stepscope::bindings {

void bind_loading(nanobind::module_& m);

}  // namespace stepscope::bindings
