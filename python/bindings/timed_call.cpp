#include "timed_call.h"

#include <structmember.h>

#include <array>
#include <cstddef>
#include <utility>

#include "base/clock.h"
#include "base/hot.h"
#include "batch_size.h"
#include "contexts.h"
#include "groups.h"
#include "loader_hooks.h"
#include "marks.h"
#include "module_slot.h"
#include "session.h"
#include "tensor.h"

namespace stepscope::bindings {
namespace {

struct TimedCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;
  vectorcallfunc* inner;  // the original's own entry; null when its type has none
  PyObject* context;      // of kNamed: its phase_context
  Hook hook;
  uint8_t argument;
};

PyTypeObject* g_type = nullptr;
PyObject* g_loader_number = nullptr;  // (loader) -> int
PyObject* g_epoch_begins = nullptr;   // the same, once an epoch
PyObject* g_epoch_ended = nullptr;    // (number) -> None: the loader gave its last batch

// Iterator object -> loader number. When more live at once than there is room for, the one that was
// turned to longest ago gives way, and counts as a loader of its own from then on.
struct LoaderOf {
  PyObject* iterator;
  uint64_t loader;
  uint64_t last_use;
};
std::array<LoaderOf, 64> g_loader_of{};
uint64_t g_loader_uses = 0;

// Its entry, or the one to be replaced.
LoaderOf& loader_entry(PyObject* iterator) {
  LoaderOf* oldest = &g_loader_of[0];
  for (LoaderOf& entry : g_loader_of) {
    if (entry.iterator == iterator) return entry;
    if (entry.last_use < oldest->last_use) oldest = &entry;
  }
  return *oldest;
}

void remember_loader(PyObject* iterator, uint64_t loader) {
  loader_entry(iterator) = {iterator, loader, ++g_loader_uses};
  if (hot().iterator == iterator) hot().loader = loader;  // another one's address
}

uint64_t loader_number(PyObject* function, PyObject* loader) {
  PyObject* number = call_quietly(function, loader);
  if (number == nullptr) return 0;
  const uint64_t value = PyLong_AsUnsignedLongLong(number);
  Py_DECREF(number);
  return value;
}

STEPSCOPE_HOT_CODE uint64_t loader_of(PyObject* iterator) {
  if (iterator == hot().iterator) return hot().loader;
  LoaderOf& entry = loader_entry(iterator);
  const bool known = entry.iterator == iterator;
  if (known) entry.last_use = ++g_loader_uses;
  hot().iterator = iterator;
  hot().loader = known ? entry.loader : reinterpret_cast<uintptr_t>(iterator);
  return hot().loader;
}

// Work object -> the sync point that waiting for it is. An object that is never waited for gives way
// to the one that gets its address, or its place.
struct SyncOf {
  PyObject* work;
  uint64_t sync;
};
std::array<SyncOf, 64> g_sync_of{};
size_t g_next_sync_of = 0;

void remember_sync(PyObject* work, uint64_t sync) {
  for (SyncOf& entry : g_sync_of)
    if (entry.work == work) {
      entry.sync = sync;
      return;
    }
  g_sync_of[g_next_sync_of++ % g_sync_of.size()] = {work, sync};
}

// Only the first wait is one.
uint64_t take_sync(PyObject* work) {
  for (SyncOf& entry : g_sync_of)
    if (entry.work == work) return std::exchange(entry, {}).sync;
  return 0;
}

struct Arguments {
  PyObject* const* values;
  size_t nargsf;
  PyObject* names;
  Py_ssize_t count() const { return PyVectorcall_NARGS(nargsf); }
};

// Straight into what it wraps, where PyObject_Vectorcall would go too.
inline PyObject* call(TimedCall* self, const Arguments& a) {
  if (self->inner == nullptr) [[unlikely]]
    return PyObject_Vectorcall(self->original, a.values, a.nargsf, a.names);
  return (*self->inner)(self->original, a.values, a.nargsf, a.names);
}

PyObject* on_span(TimedCall* self, const Arguments& a) {
  if (nesting.spans > 0 || !awake()) return call(self, a);
  ++nesting.spans;
  rec().begin(self->argument);
  PyObject* result = call(self, a);
  rec().end(self->argument, result == nullptr);
  --nesting.spans;
  return result;
}

PyObject* on_iter(TimedCall* self, const Arguments& a) {
  if (!awake() || a.count() < 1) return call(self, a);
  session().fetch_seen = true;
  forget_modules();  // a frozen model may have been thawed
  watch_all_classes();
  rec().iter_begin(loader_number(g_epoch_begins, a.values[0]), grad_enabled());
  PyObject* result = call(self, a);
  rec().iter_end(result == nullptr);
  return result;
}

PyObject* on_iter_init(TimedCall* self, const Arguments& a) {
  if (hot().state.load(std::memory_order_relaxed) != State::kOff && a.count() >= 2)
    remember_loader(a.values[0], loader_number(g_loader_number, a.values[1]));
  return call(self, a);
}

// No batch: the loader's end, or an exception.
[[gnu::cold]] void no_batch(PyObject* iterator) {
  const bool exhausted = PyErr_ExceptionMatches(PyExc_StopIteration) != 0;
  rec().fetch_failed(exhausted);
  if (!exhausted) return;
  PyObject* number = PyLong_FromUnsignedLongLong(loader_of(iterator));
  if (number != nullptr) Py_XDECREF(call_quietly(g_epoch_ended, number));
  Py_XDECREF(number);
}

STEPSCOPE_HOT_CODE PyObject* on_fetch(TimedCall* self, const Arguments& a) {
  if (!awake() || a.count() < 1) return call(self, a);
  rec().fetch_begin(loader_of(a.values[0]), grad_enabled());
  PyObject* batch = call(self, a);
  if (batch != nullptr)
    rec().fetch_end(batch_size(batch));
  else
    no_batch(a.values[0]);
  return batch;
}

// True when DistributedDataParallel is in use and waits for the other ranks at the end of this backward.
bool reduces() {
  static PyObject* const name = interned("require_backward_grad_sync");
  PyObject* ddp = referent(session().reducer_owner);
  if (ddp == nullptr) return false;
  const bool yes = flag_of(ddp, name, false);
  Py_DECREF(ddp);
  return yes;
}

[[gnu::cold]] void tell_recomputed() {
  hot().rare.fetch_and(static_cast<uint8_t>(~Hot::kRecomputed), std::memory_order_relaxed);
  rec().recomputed(session().recomputed_ns.exchange(0, std::memory_order_relaxed));
}

void recompute_begins() {
  if (nesting.recompute_begin_ns == 0) nesting.recompute_begin_ns = monotonic_ns();
}

[[gnu::cold]] void recompute_ends() {
  const int64_t took_ns = monotonic_ns() - std::exchange(nesting.recompute_begin_ns, 0);
  session().recomputed_ns.fetch_add(took_ns, std::memory_order_relaxed);
  hot().rare.fetch_or(Hot::kRecomputed, std::memory_order_relaxed);
}

PyObject* on_recompute_enter(TimedCall* self, const Arguments& a) {
  if (!compiling() && nesting.recomputes++ == 0 && awake()) recompute_begins();
  return call(self, a);
}

PyObject* on_recompute_exit(TimedCall* self, const Arguments& a) {
  if (nesting.recomputes > 0 && --nesting.recomputes == 0 && nesting.recompute_begin_ns != 0)
    recompute_ends();
  return call(self, a);
}

PyObject* on_recompute(TimedCall* self, const Arguments& a) {
  if (compiling() || nesting.recomputes > 0 || !awake()) return call(self, a);
  recompute_begins();
  PyObject* result = call(self, a);
  if (nesting.recompute_begin_ns != 0) recompute_ends();  // it raised
  return result;
}

// What the user interrupts here is his own loop.
[[gnu::cold]] bool show_live_view() {
  PyObject* function = session().live_view;
  if (function == nullptr) return true;
  PyObject* drawn = PyObject_CallNoArgs(function);
  Py_XDECREF(drawn);
  if (drawn != nullptr || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0)
    return drawn != nullptr;
  PyErr_Clear();
  return true;
}

STEPSCOPE_HOT_CODE PyObject* on_backward(TimedCall* self, const Arguments& a) {
  if (nesting.recompute_begin_ns != 0 && nesting.recomputes == 0) [[unlikely]]
    recompute_ends();
  if (nesting.backwards > 0 || compiling()) return call(self, a);
  const bool reduced = hot().reducer && reduces();
  const uint64_t sync = reduced ? next_reducer_sync() : 0;
  if (!awake()) return call(self, a);
  ++nesting.backwards;
  rec().backward_begin(reduced, sync);
  if (--hot().until_look == 0 || !hot().forward_seen) [[unlikely]]
    look_around();
  hot().forward_seen = false;
  PyObject* result = call(self, a);
  --nesting.backwards;
  const uint8_t rare = hot().rare.load(std::memory_order_relaxed);
  if ((rare & Hot::kRecomputed) != 0) [[unlikely]]
    tell_recomputed();
  if (!rec().backward_end(result == nullptr, reduced) && reduced && result != nullptr)
    Py_XDECREF(call_quietly(session().rearm));
  if ((rare & Hot::kLiveView) != 0) [[unlikely]]
    if (result != nullptr && !show_live_view()) Py_CLEAR(result);
  return result;
}

PyObject* on_forward(TimedCall* self, const Arguments& a) {
  if (!awake()) return call(self, a);
  return timed_forward(true, [&] { return call(self, a); });
}

PyObject* on_sync(TimedCall* self, const Arguments& a) {
  const uint64_t sync = hot().reducer ? next_reducer_sync() : 0;
  if (!awake()) return call(self, a);
  rec().sync_begin(sync, true);
  PyObject* result = call(self, a);
  rec().sync_end();
  return result;
}

PyObject* on_issue(TimedCall* self, const Arguments& a) {
  PyObject* work = call(self, a);
  const bool issued = work != nullptr && work != Py_None && a.count() >= 1;
  if (issued && (awake() || hot().state.load(std::memory_order_relaxed) == State::kAwake))
    remember_sync(work, next_sync(a.values[0]));
  return work;
}

PyObject* on_wait(TimedCall* self, const Arguments& a) {
  if (a.count() < 1) return call(self, a);
  const uint64_t sync = take_sync(a.values[0]);
  if (!awake()) return call(self, a);
  rec().sync_begin(sync, sync != 0);
  PyObject* result = call(self, a);
  rec().sync_end();
  return result;
}

PyObject* on_maybe_step(TimedCall* self, const Arguments& a) {
  if (!awake()) return call(self, a);
  const uint64_t before = optimizer_steps_begun();
  PyObject* result = call(self, a);
  if (result != nullptr && optimizer_steps_begun() == before) {
    count_optimizer_step();  // one that calls another is not a second skip
    rec().optimizer_skipped();
  }
  return result;
}

// Tensor.to(device) and .cuda(): a CPU tensor that comes back elsewhere. device_tensor.copy_(cpu_tensor): the source.
PyObject* on_to_device(TimedCall* self, const Arguments& a) {
  const bool copy_into = self->argument != 0;
  if (a.count() < 1 || nesting.spans > 0 || !awake()) return call(self, a);
  const bool candidate = copy_into ? a.count() >= 2 && on_cpu(a.values[1]) && !on_cpu(a.values[0])
                                   : on_cpu(a.values[0]);
  if (!candidate) return call(self, a);
  const auto h2d = static_cast<uint8_t>(Phase::kH2d);
  ++nesting.spans;
  rec().begin(h2d);
  PyObject* result = call(self, a);
  --nesting.spans;
  if (result == nullptr || copy_into || !on_cpu(result))
    rec().end(h2d, result == nullptr);
  else
    rec().cancel(h2d);
  return result;
}

template <bool kOpen>
PyObject* on_profiler(TimedCall* self, const Arguments& a) {
  if (!awake()) return call(self, a);
  const auto profiler = static_cast<uint8_t>(Phase::kProfiler);
  if (kOpen) rec().profiler_window(true);
  rec().begin(profiler);
  PyObject* result = call(self, a);
  rec().end(profiler, result == nullptr);
  if (!kOpen) rec().profiler_window(false);
  return result;
}

// Only where something trains already: a Trainer calls its callbacks while it is being made.
PyObject* on_named(TimedCall* self, const Arguments& a) {
  const bool recording = hot().state.load(std::memory_order_relaxed) == State::kAwake;
  if (!recording || !enter_phase(self->context)) return call(self, a);
  PyObject* result = call(self, a);
  leave_phase(self->context, result == nullptr);
  return result;
}

PyObject* on_loader(TimedCall* self, const Arguments& a) {
  return loader_hook(self->hook, self->argument, self->original, {a.values, a.nargsf, a.names});
}

using Handler = PyObject* (*)(TimedCall*, const Arguments&);

// Each hook is entered by a function of its own: one for all would look its case up in a table.
template <Handler kHandler>
PyObject* entry(PyObject* self, PyObject* const* values, size_t nargsf, PyObject* names) {
  return kHandler(reinterpret_cast<TimedCall*>(self), {values, nargsf, names});
}

template <Handler kHandler>  // of every step
STEPSCOPE_HOT_CODE PyObject* hot_entry(PyObject* self, PyObject* const* values, size_t nargsf,
                                       PyObject* names) {
  return kHandler(reinterpret_cast<TimedCall*>(self), {values, nargsf, names});
}

vectorcallfunc entry_of(Hook hook) {
  switch (hook) {
    case Hook::kSpan:
      return entry<on_span>;
    case Hook::kIter:
      return entry<on_iter>;
    case Hook::kIterInit:
      return entry<on_iter_init>;
    case Hook::kFetch:
      return hot_entry<on_fetch>;
    case Hook::kBackward:
      return hot_entry<on_backward>;
    case Hook::kForward:
      return entry<on_forward>;
    case Hook::kSync:
      return entry<on_sync>;
    case Hook::kIssue:
      return entry<on_issue>;
    case Hook::kWait:
      return entry<on_wait>;
    case Hook::kMaybeStep:
      return entry<on_maybe_step>;
    case Hook::kToDevice:
      return entry<on_to_device>;
    case Hook::kProfilerOpen:
      return entry<on_profiler<true>>;
    case Hook::kProfilerClose:
      return entry<on_profiler<false>>;
    case Hook::kNamed:
      return entry<on_named>;
    case Hook::kRecomputeEnter:
      return entry<on_recompute_enter>;
    case Hook::kRecomputeExit:
      return entry<on_recompute_exit>;
    case Hook::kRecompute:
      return entry<on_recompute>;
    default:
      return entry<on_loader>;
  }
}

vectorcallfunc* own_entry(PyObject* callable) {
  PyTypeObject* type = Py_TYPE(callable);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL)) return nullptr;
  auto* entry = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(callable) +
                                                  type->tp_vectorcall_offset);
  return *entry == nullptr ? nullptr : entry;
}

PyObject* timed_get(PyObject* self, PyObject* instance, PyObject* /*owner*/) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

// Whether `self` stands in its module under the name that what it wraps has.
bool stands_for_original(PyObject* self, PyObject* original, PyObject** name) {
  PyObject* module_name = PyObject_GetAttrString(original, "__module__");
  *name = PyObject_GetAttrString(original, "__qualname__");
  PyObject* at = module_name == nullptr ? nullptr : PyImport_GetModule(module_name);
  Py_XDECREF(module_name);
  PyObject* parts = *name == nullptr || !PyUnicode_Check(*name)
                        ? nullptr
                        : PyUnicode_Split(*name, interned("."), -1);
  for (Py_ssize_t i = 0; at != nullptr && parts != nullptr && i < PyList_GET_SIZE(parts); ++i) {
    PyObject* next = PyObject_GetAttr(at, PyList_GET_ITEM(parts, i));
    Py_DECREF(at);
    at = next;
  }
  Py_XDECREF(parts);
  Py_XDECREF(at);
  PyErr_Clear();
  return at == self && *name != nullptr;
}

// pickle and copy find what is wrapped by the name that it has in its module, where we stand, or by
// itself: not every callable can be pickled through its own methods.
PyObject* reduce_to_original(PyObject* self, PyObject*) {
  PyObject* original = reinterpret_cast<TimedCall*>(self)->original;
  PyObject* name = nullptr;
  if (stands_for_original(self, original, &name)) return name;
  Py_XDECREF(name);
  PyObject* copy = PyImport_ImportModule("copy");
  PyObject* identity = copy == nullptr ? nullptr : PyObject_GetAttrString(copy, "copy");
  Py_XDECREF(copy);
  return identity == nullptr ? nullptr : Py_BuildValue("(N(O))", identity, original);
}
PyMethodDef g_reduce = {"__reduce_ex__", reduce_to_original, METH_O, nullptr};

PyObject* timed_getattr(PyObject* self, PyObject* name) {
  if (reinterpret_cast<TimedCall*>(self)->hook >= Hook::kLoaderFetch &&
      PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0)
    return PyCFunction_New(&g_reduce, self);
  return PyObject_GetAttr(reinterpret_cast<TimedCall*>(self)->original, name);
}

int timed_setattr(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(reinterpret_cast<TimedCall*>(self)->original, name, value);
}

PyObject* timed_repr(PyObject* self) {
  return PyObject_Repr(reinterpret_cast<TimedCall*>(self)->original);
}

// Equal to what it wraps, also as a key.
Py_hash_t timed_hash(PyObject* self) {
  return PyObject_Hash(reinterpret_cast<TimedCall*>(self)->original);
}
PyObject* timed_compare(PyObject* self, PyObject* other, int operation) {
  if (Py_IS_TYPE(other, g_type)) other = reinterpret_cast<TimedCall*>(other)->original;
  return PyObject_RichCompare(reinterpret_cast<TimedCall*>(self)->original, other, operation);
}

// Those of a loader's epoch go with it, and what they wrap (a queue's pipe) with them.
void timed_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<TimedCall*>(self)->original);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TimedCall, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot g_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(timed_dealloc)},
                         {Py_tp_hash, reinterpret_cast<void*>(timed_hash)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(timed_compare)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_descr_get, reinterpret_cast<void*>(timed_get)},
                         {Py_tp_getattro, reinterpret_cast<void*>(timed_getattr)},
                         {Py_tp_setattro, reinterpret_cast<void*>(timed_setattr)},
                         {Py_tp_repr, reinterpret_cast<void*>(timed_repr)},
                         {Py_tp_members, g_members},
                         {0, nullptr}};

PyType_Spec g_spec = {"stepscope._native.TimedCall", sizeof(TimedCall), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      g_slots};

}  // namespace

bool init_timed_call() {
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_spec));
  return g_type != nullptr;
}

PyObject* timed_call(PyObject* original, Hook hook, uint8_t argument) {
  TimedCall* self = PyObject_New(TimedCall, g_type);
  if (self == nullptr) return nullptr;
  self->vectorcall = entry_of(hook);
  self->original = Py_NewRef(original);
  self->inner = own_entry(original);
  self->context = nullptr;
  self->hook = hook;
  self->argument = argument;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* named_call(PyObject* original, const char* name) {
  PyObject* context = phase_context(name);
  PyObject* object = context == nullptr ? nullptr : timed_call(original, Hook::kNamed, 0);
  if (object == nullptr) {
    Py_XDECREF(context);
    return nullptr;
  }
  reinterpret_cast<TimedCall*>(object)->context = context;
  return object;
}

void set_loader_functions(PyObject* number, PyObject* epoch_begins, PyObject* epoch_ended) {
  g_loader_number = Py_NewRef(number);
  g_epoch_begins = Py_NewRef(epoch_begins);
  g_epoch_ended = Py_NewRef(epoch_ended);
}

}  // namespace stepscope::bindings
