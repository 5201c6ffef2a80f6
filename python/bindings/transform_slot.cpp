#include "transform_slot.h"

#include <array>
#include <cstddef>

#include "loader_timing.h"

namespace stepscope::bindings {
namespace {

struct Watched {
  PyTypeObject* type;
  ternaryfunc original;
};
std::array<Watched, 128> g_watched{};
size_t g_watched_count = 0;

struct Transform {
  PyObject* object;  // not kept alive: a stale one only misnames time
  uint8_t number;
};
constexpr size_t kTransformSlots = 256, kProbes = 8;
std::array<Transform, kTransformSlots> g_transforms{};

size_t slot_of(const PyObject* object) {
  return (reinterpret_cast<uintptr_t>(object) >> 4) % kTransformSlots;
}

uint8_t number_of(const PyObject* object) {
  for (size_t i = 0; i < kProbes; ++i) {
    const Transform& t = g_transforms[(slot_of(object) + i) % kTransformSlots];
    if (t.object == object) return t.number;
  }
  return 0;
}

ternaryfunc watched_as(const PyObject* type) {
  for (size_t i = 0; i < g_watched_count; ++i)
    if (reinterpret_cast<PyObject*>(g_watched[i].type) == type) return g_watched[i].original;
  return nullptr;
}

// Of the class, or of one that it has our slot from.
ternaryfunc original_of(PyTypeObject* type) {
  ternaryfunc original = watched_as(reinterpret_cast<PyObject*>(type));
  for (Py_ssize_t i = 1; original == nullptr && i < PyTuple_GET_SIZE(type->tp_mro); ++i)
    original = watched_as(PyTuple_GET_ITEM(type->tp_mro, i));
  return original;
}

PyObject* transform_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const ternaryfunc original = original_of(Py_TYPE(self));
  if (original == nullptr) {  // cannot be: a slot of ours comes from a class that is watched
    PyErr_SetString(PyExc_SystemError, "stepscope: a watched class was lost");
    return nullptr;
  }
  const uint8_t number = timing() ? number_of(self) : 0;
  if (number == 0) return original(self, args, kwargs);
  return timed(number, [&] { return original(self, args, kwargs); });
}

}  // namespace

bool time_transform(PyObject* transform, uint8_t number) {
  PyTypeObject* type = Py_TYPE(transform);
  const bool ours = type->tp_call == transform_call;
  if (!ours) {
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || type->tp_call == nullptr ||
        PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL) || g_watched_count == g_watched.size())
      return false;
    for (size_t i = 0; i < g_watched_count; ++i)
      if (g_watched[i].type == type) return false;  // somebody set its slot anew
    Py_INCREF(type);
    g_watched[g_watched_count++] = {type, type->tp_call};
    type->tp_call = transform_call;
  } else if (original_of(type) == nullptr) {
    return false;
  }
  for (size_t i = 0; i < kProbes; ++i) {
    Transform& t = g_transforms[(slot_of(transform) + i) % kTransformSlots];
    if (t.object != nullptr && t.object != transform && i + 1 < kProbes) continue;
    t = {transform, number};
    return true;
  }
  return false;
}

void forget_transforms() { g_transforms = {}; }

}  // namespace stepscope::bindings
