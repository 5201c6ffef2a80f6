#include "tensor.h"

#include <dlfcn.h>

#include "base/hot.h"
#include "session.h"
#include "wire/segment_format.h"

namespace stepscope::bindings {
namespace {

// at::impl::torch_function_mode_enabled(), static and without arguments; torch calls it at every operation.
using Question = bool (*)();
STEPSCOPE_HOT_DATA constinit Question g_mode_enabled = nullptr;

PyObject* g_disable = nullptr;  // torch._C.DisableTorchFunction
// Of the base class: what a subclass puts in their place is the user's code.
PyObject* g_shape = nullptr;
PyObject* g_is_cpu = nullptr;
PyObject* g_nbytes = nullptr;

bool find_mode_enabled() {
  void* library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return false;
  void* symbol = dlsym(library, "_ZN2at4impl27torch_function_mode_enabledEv");
  dlclose(library);  // torch holds it
  g_mode_enabled = reinterpret_cast<Question>(symbol);
  return symbol != nullptr;
}

// No torch function of anybody's is asked about it.
bool is_plain(PyObject* tensor) {
  return g_mode_enabled != nullptr && Py_IS_TYPE(tensor, hot().tensor_type) && !g_mode_enabled();
}

PyObject* get(PyObject* descriptor, PyObject* tensor) {
  PyObject* value =
      Py_TYPE(descriptor)
          ->tp_descr_get(descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor)));
  if (value == nullptr) PyErr_Clear();
  return value;
}

// `Base.descriptor` of the tensor with torch functions switched off, or nullptr without an error set.
PyObject* property(PyObject* tensor, PyObject* descriptor) {
  if (descriptor == nullptr) return nullptr;
  if (is_plain(tensor)) return get(descriptor, tensor);
  if (g_disable == nullptr) return nullptr;
  PyObject* off = PyObject_CallNoArgs(g_disable);
  PyObject* entered = off == nullptr ? nullptr : PyObject_CallMethod(off, "__enter__", nullptr);
  PyObject* value = nullptr;
  if (entered != nullptr) {
    value = get(descriptor, tensor);
    Py_XDECREF(PyObject_CallMethod(off, "__exit__", "OOO", Py_None, Py_None, Py_None));
  }
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  Py_XDECREF(entered);
  Py_XDECREF(off);
  return value;
}

uint64_t first_of_shape(PyObject* tensor) {
  PyObject* shape = property(tensor, g_shape);
  if (shape == nullptr) return wire::kUnmeasured;
  uint64_t size = wire::kUnmeasured;
  // A symbolic size is no int: asked for its number it would become a guard.
  if (PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) > 0 &&
      PyLong_CheckExact(PyTuple_GET_ITEM(shape, 0))) {
    const long long first = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, 0));
    if (first >= 0)
      size = static_cast<uint64_t>(first);
    else
      PyErr_Clear();
  }
  Py_DECREF(shape);
  return size;
}

PyObject* property_of_type(PyTypeObject* type, const char* name) {
  PyObject* descriptor = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name);
  if (descriptor == nullptr) PyErr_Clear();
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_get == nullptr) return nullptr;
  return descriptor;  // kept for ever
}

}  // namespace

void set_tensor_type(PyObject* type, PyObject* disable_torch_function) {
  auto* tensor = reinterpret_cast<PyTypeObject*>(type);
  hot().tensor_type = tensor;
  g_disable = disable_torch_function;
  if (tensor->tp_base == nullptr) return;
  g_shape = property_of_type(tensor->tp_base, "shape");
  g_is_cpu = property_of_type(tensor->tp_base, "is_cpu");
  g_nbytes = property_of_type(tensor->tp_base, "nbytes");
  // Tensor.__len__ is Python and hides the C slot of the class below it, which is what we call.
  const PyMappingMethods* mapping = tensor->tp_base->tp_as_mapping;
  if (mapping != nullptr && find_mode_enabled()) hot().tensor_length = mapping->mp_length;
}

bool is_tensor(PyObject* object) {
  return hot().tensor_type != nullptr && PyObject_TypeCheck(object, hot().tensor_type);
}

STEPSCOPE_HOT_CODE uint64_t first_dimension(PyObject* tensor) {
  if (hot().tensor_length == nullptr || !is_plain(tensor)) return first_of_shape(tensor);
  const Py_ssize_t length = hot().tensor_length(tensor);
  if (length >= 0) return static_cast<uint64_t>(length);
  PyErr_Clear();
  return wire::kUnmeasured;
}

uint64_t tensor_bytes(PyObject* tensor) {
  PyObject* value = property(tensor, g_nbytes);
  const uint64_t count =
      value != nullptr && PyLong_Check(value) ? PyLong_AsUnsignedLongLong(value) : 0;
  Py_XDECREF(value);
  if (PyErr_Occurred() == nullptr) return count;
  PyErr_Clear();
  return 0;
}

bool on_cpu(PyObject* object) {
  if (!is_tensor(object)) return false;
  PyObject* value = property(object, g_is_cpu);
  const bool yes = value == Py_True;
  Py_XDECREF(value);
  return yes;
}

}  // namespace stepscope::bindings
