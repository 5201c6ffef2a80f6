// The number of samples in a batch: the first dimension of the first tensor found in it.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

// wire::kUnmeasured when there is no tensor with a dimension, or it lies deeper than four containers. Never raises.
uint64_t batch_size(PyObject* batch);

}  // namespace stepscope::bindings
