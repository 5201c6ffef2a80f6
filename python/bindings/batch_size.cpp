#include "batch_size.h"

#include "base/hot.h"
#include "session.h"
#include "tensor.h"

namespace stepscope::bindings {
namespace {

constexpr int kMaxDepth = 4;
constexpr Py_ssize_t kMaxItems =
    8;  // a batch whose first eight members hold no tensor is not searched further

uint64_t find(PyObject* object, int depth);

uint64_t in_dict(PyObject* dict, int depth) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = 0; i < kMaxItems && PyDict_Next(dict, &position, &key, &value); ++i) {
    const uint64_t size = find(value, depth + 1);
    if (size != wire::kUnmeasured) return size;
  }
  return wire::kUnmeasured;
}

uint64_t in_sequence(PyObject* sequence, int depth) {
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(sequence);
  for (Py_ssize_t i = 0; i < length && i < kMaxItems; ++i) {
    const uint64_t size = find(PySequence_Fast_GET_ITEM(sequence, i), depth + 1);
    if (size != wire::kUnmeasured) return size;
  }
  return wire::kUnmeasured;
}

uint64_t find(PyObject* object, int depth) {
  if (depth > kMaxDepth) return wire::kUnmeasured;
  if (is_tensor(object)) return first_dimension(object);
  if (PyTuple_Check(object) || PyList_Check(object)) return in_sequence(object, depth);
  if (PyDict_Check(object)) return in_dict(object, depth);
  // Mappings built on UserDict (transformers' BatchEncoding) keep their dict in `data`; a plain dataclass or
  // namedtuple-like batch keeps its fields in its instance dict.
  PyObject** instance = _PyObject_GetDictPtr(object);
  if (instance != nullptr && *instance != nullptr) return in_dict(*instance, depth);
  return wire::kUnmeasured;
}

}  // namespace

// A list of plain tensors, or one, is found without a call.
STEPSCOPE_HOT_CODE uint64_t batch_size(PyObject* batch) {
  if (hot().tensor_type == nullptr) return wire::kUnmeasured;
  PyObject* first = batch;
  if (PyList_CheckExact(batch) && PyList_GET_SIZE(batch) > 0) first = PyList_GET_ITEM(batch, 0);
  if (Py_IS_TYPE(first, hot().tensor_type)) return first_dimension(first);
  return find(batch, 0);
}

}  // namespace stepscope::bindings
