#include "groups.h"

#include <array>

#include "session.h"
#include "wire/segment_format.h"

namespace stepscope::bindings {
namespace {

struct Known {
  uintptr_t group;
  uint32_t number;
};
std::array<Known, wire::kMaxGroups> g_known{};
size_t g_next_known = 0;
std::array<uint32_t, wire::kMaxGroups + 1> g_counts{};  // by number
uint32_t g_reducer_number = 0;
PyObject* g_number_of = nullptr;

uint32_t number_of(PyObject* group) {
  const auto address = reinterpret_cast<uintptr_t>(group);
  for (const Known& known : g_known)
    if (known.group == address) return known.number;
  if (hot().state.load(std::memory_order_relaxed) != State::kAwake) return 0;  // no segment yet
  PyObject* answer = call_quietly(g_number_of, group);
  if (answer == nullptr) return 0;
  const unsigned long number = PyLong_AsUnsignedLong(answer);
  Py_DECREF(answer);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  const uint32_t valid = number < g_counts.size() ? static_cast<uint32_t>(number) : 0;
  g_known[g_next_known++ % g_known.size()] = {address, valid};
  return valid;
}

uint64_t next_of(uint32_t number) {
  return number == 0 ? 0 : wire::pack_sync(number, g_counts[number]++);
}

}  // namespace

void set_group_number_function(PyObject* function) { g_number_of = Py_NewRef(function); }

uint64_t next_sync(PyObject* group) { return next_of(number_of(group)); }

void set_reducer_group(PyObject* group) {
  g_reducer_number = group == nullptr ? 0 : number_of(group);
}
uint64_t next_reducer_sync() { return next_of(g_reducer_number); }

void forget_group(uintptr_t group) {
  for (Known& known : g_known)
    if (known.group == group) known = {};
}

void forget_all_groups() {
  g_known = {};
  g_counts = {};
  g_reducer_number = 0;
}

}  // namespace stepscope::bindings
