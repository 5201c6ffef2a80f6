// What the hooks ask of a tensor, without any code of the user's: neither __torch_function__ of a subclass nor a
// TorchFunctionMode sees the question.
// Thread safety: the GIL. Nothing here raises.
#pragma once

#include <Python.h>

#include <cstdint>

namespace stepscope::bindings {

// torch.Tensor, and torch._C.DisableTorchFunction or nullptr; once, before any hook is installed.
void set_tensor_type(PyObject* type, PyObject* disable_torch_function);

bool is_tensor(PyObject* object);
uint64_t first_dimension(
    PyObject* tensor);  // wire::kUnmeasured where there is none, or a symbolic one
uint64_t tensor_bytes(PyObject* tensor);  // 0 where it does not say
bool on_cpu(PyObject* object);            // false also for what is no tensor

}  // namespace stepscope::bindings
