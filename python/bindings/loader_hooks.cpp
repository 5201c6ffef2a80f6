#include "loader_hooks.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "loader_timing.h"
#include "session.h"
#include "tensor.h"
#include "transform_slot.h"

namespace stepscope::bindings {

constinit thread_local LoadingCalls loading_calls;
constinit std::atomic<int> threads_fetching{0};

namespace {

PyObject* g_fetcher_made = nullptr;
PyObject* g_workers_started = nullptr;

// Object -> loader number. The longest unused gives way.
class LoaderTable {
 public:
  void put(PyObject* object, uint32_t loader) {
    for (Entry& entry : entries_)
      if (entry.object == object) {
        entry.loader = loader;
        return;
      }
    entries_[next_++ % entries_.size()] = {object, loader};
  }
  uint32_t find(PyObject* object) const {
    for (const Entry& entry : entries_)
      if (entry.object == object) return entry.loader;
    return 0;
  }

 private:
  struct Entry {
    PyObject* object;
    uint32_t loader;
  };
  std::array<Entry, 32> entries_{};
  size_t next_ = 0;
};
LoaderTable g_fetchers, g_iterators;

struct Process {
  bool worker = false;
  bool asked_which = false;  // told once
  int64_t last_end_ns = 0;   // of the batch before; 0: none in this epoch
  int64_t looked_ns = 0;
  int64_t cpu_ns = 0, core_wait_ns = 0, faults = 0, major_faults = 0;  // as of the last look
} g_process;
constexpr int64_t kLookEveryNs = 100'000'000;  // a look costs as much as a hundred timed calls

constinit thread_local int64_t t_received_ns = 0;  // end of the last read from a pipe
constinit thread_local int64_t t_polled = 0;       // ns waited for it
constinit thread_local bool t_pins = false;

PyObject* call_of(PyObject* original, const CallArguments& a) {
  return PyObject_Vectorcall(original, a.values, a.nargsf, a.names);
}

int64_t core_wait_ns() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[96] = {};
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  char* second = size > 0 ? strchr(text, ' ') : nullptr;
  return second == nullptr ? 0 : std::strtoll(second, nullptr, 10);
}

// A worker is nobody's step thread: it may ask the kernel, now and then.
void look_at_resources(bool count, int64_t now_ns) {
  g_process.looked_ns = now_ns;
  const int saved = errno;
  rusage use{};
  if (getrusage(RUSAGE_SELF, &use) == 0) {
    const auto ns = [](const timeval& t) { return (t.tv_sec * 1'000'000LL + t.tv_usec) * 1000; };
    const int64_t cpu = ns(use.ru_utime) + ns(use.ru_stime), wait = core_wait_ns();
    const auto add = [count](LoaderPart part, int64_t& last, int64_t value) {
      if (count) loading().add(part, std::max<int64_t>(0, value - last));
      last = value;
    };
    add(LoaderPart::kCpu, g_process.cpu_ns, cpu);
    add(LoaderPart::kCoreWait, g_process.core_wait_ns, wait);
    add(LoaderPart::kFaults, g_process.faults, use.ru_minflt);
    add(LoaderPart::kMajorFaults, g_process.major_faults, use.ru_majflt);
  }
  errno = saved;
}

uint32_t samples_of(PyObject* index) {
  if (!PyList_Check(index) && !PyTuple_Check(index)) return 1;
  return static_cast<uint32_t>(PySequence_Fast_GET_SIZE(index));
}

PyObject* on_fetch(PyObject* original, const CallArguments& a) {
  if (loading_calls.fetches || a.count() < 2 || !loading().recording()) return call_of(original, a);
  const uint32_t loader = g_process.worker ? 0 : g_fetchers.find(a.values[0]);
  if (!g_process.worker && (loader == 0 || !rec().recording())) return call_of(original, a);
  const uint32_t samples = samples_of(a.values[1]);
  const int64_t begin_ns = monotonic_ns();
  if (g_process.worker && g_process.last_end_ns > 0)
    loading().add(LoaderPart::kWait, begin_ns - g_process.last_end_ns);
  loading_calls.fetches = true;
  threads_fetching.fetch_add(1, std::memory_order_relaxed);
  PyObject* result = call_of(original, a);
  threads_fetching.fetch_sub(1, std::memory_order_relaxed);
  loading_calls.fetches = false;
  const int64_t end_ns = monotonic_ns();
  g_process.last_end_ns = end_ns;
  if (g_process.worker && (result == nullptr || end_ns - g_process.looked_ns >= kLookEveryNs))
    look_at_resources(true, end_ns);
  if (result != nullptr)
    loading().batch_done(loader, samples, end_ns - begin_ns, end_ns);
  else
    loading().flush(end_ns);
  return result;
}

PyObject* on_part(uint8_t part, PyObject* original, const CallArguments& a) {
  if (!timing()) return call_of(original, a);
  if (part == static_cast<uint8_t>(LoaderPart::kOpen)) loading().add(LoaderPart::kOpens, 1);
  return timed(part, [&] { return call_of(original, a); });
}

// What a batch's tensors hold: it is handed over through /dev/shm. Of the first items, as deep as a batch is.
uint64_t shared_bytes(PyObject* object, int depth = 0) {
  constexpr int kMaxDepth = 4;
  constexpr Py_ssize_t kMaxItems = 64;
  if (depth > kMaxDepth) return 0;
  if (is_tensor(object)) return tensor_bytes(object);
  uint64_t sum = 0;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    const Py_ssize_t length = PySequence_Fast_GET_SIZE(object);
    for (Py_ssize_t i = 0; i < length && i < kMaxItems; ++i)
      sum += shared_bytes(PySequence_Fast_GET_ITEM(object, i), depth + 1);
  } else if (PyDict_Check(object)) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; i < kMaxItems && PyDict_Next(object, &position, &key, &value); ++i)
      sum += shared_bytes(value, depth + 1);
  }
  return sum;
}

// On the thread that feeds the queue.
PyObject* on_pickle(PyObject* original, const CallArguments& a) {
  if (!loading().recording()) return call_of(original, a);
  if (a.count() >= 1)
    loading().add(LoaderPart::kSharedBytes, static_cast<int64_t>(shared_bytes(a.values[0])));
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call_of(original, a);
  loading().add(LoaderPart::kPickle, monotonic_ns() - begin_ns);
  if (result == nullptr) return nullptr;
  const Py_ssize_t size = PyObject_Length(result);
  if (size > 0)
    loading().add(LoaderPart::kPickleBytes, size);
  else
    PyErr_Clear();
  return result;
}

int64_t integer_of(PyObject* object, PyObject* name) {
  PyObject* value = attribute(object, name);
  const int64_t number = value != nullptr && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
  if (number == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();
  Py_XDECREF(value);
  return number;
}

// Which worker the next batch comes from, and how many batches have come that were not taken.
struct Ahead {
  uint32_t worker = 0xffff, depth = 0;
  bool here = false;
};
Ahead look_ahead(PyObject* iterator) {
  static PyObject* const received = interned("_rcvd_idx");
  static PyObject* const tasks = interned("_task_info");
  static PyObject* const outstanding = interned("_tasks_outstanding");
  Ahead ahead;
  PyObject* index = attribute(iterator, received);
  PyObject* info = attribute(iterator, tasks);
  if (index != nullptr && info != nullptr && PyDict_Check(info)) {
    const int64_t waiting = integer_of(iterator, outstanding);
    ahead.depth = static_cast<uint32_t>(
        std::max<int64_t>(0, PyDict_GET_SIZE(info) - std::max<int64_t>(waiting, 0)));
    PyObject* task = PyDict_GetItemWithError(info, index);
    if (task == nullptr) PyErr_Clear();
    if (task != nullptr && PyTuple_Check(task) && PyTuple_GET_SIZE(task) > 0) {
      ahead.here = PyTuple_GET_SIZE(task) > 1;
      const long worker = PyLong_AsLong(PyTuple_GET_ITEM(task, 0));
      if (worker >= 0)
        ahead.worker = static_cast<uint32_t>(worker);
      else
        PyErr_Clear();
    }
  }
  Py_XDECREF(index);
  Py_XDECREF(info);
  return ahead;
}

// A batch that costs no more than the way through an idle queue was ready.
constexpr int64_t kReadyNs = 100'000;

PyObject* on_next(PyObject* original, const CallArguments& a) {
  if (a.count() < 1 || !loading().recording() || !rec().recording()) return call_of(original, a);
  const uint32_t loader = g_iterators.find(a.values[0]);
  if (loader == 0) return call_of(original, a);
  const Ahead ahead = look_ahead(a.values[0]);
  t_polled = 0;
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call_of(original, a);
  const int64_t end_ns = monotonic_ns();
  if (result != nullptr) {
    // What came through the pipe waited for the pipe's first byte alone; with a thread that pins,
    // that thread did.
    const bool ready = ahead.here || (t_polled > 0 ? t_polled : end_ns - begin_ns) < kReadyNs;
    loading().taken(
        loader,
        wire::pack_taken(static_cast<uint64_t>(end_ns - begin_ns), ahead.worker, ahead.depth),
        grad_enabled(), ready);
  }
  loading().taken_over(loader, end_ns);
  return result;
}

PyObject* on_poll(PyObject* original, const CallArguments& a) {
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call_of(original, a);
  t_polled += std::max<int64_t>(1, monotonic_ns() - begin_ns);
  return result;
}

PyObject* on_receive(PyObject* original, const CallArguments& a) {
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call_of(original, a);
  t_received_ns = monotonic_ns();
  loading().add(LoaderPart::kReceive, t_received_ns - begin_ns);
  return result;
}

// _try_get_data: what it does after the last byte has come is making objects of the bytes.
PyObject* on_try_get(PyObject* original, const CallArguments& a) {
  t_received_ns = 0;
  PyObject* result = call_of(original, a);
  if (t_received_ns > 0) loading().add(LoaderPart::kUnpickle, monotonic_ns() - t_received_ns);
  return result;
}

PyObject* on_pin(PyObject* original, const CallArguments& a) {
  if (t_pins || !loading().recording()) return call_of(original, a);
  t_pins = true;  // it calls itself for what a batch holds
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call_of(original, a);
  loading().add(LoaderPart::kPin, monotonic_ns() - begin_ns);
  t_pins = false;
  return result;
}

PyObject* on_fetcher_made(PyObject* original, const CallArguments& a) {
  PyObject* fetcher = call_of(original, a);
  if (fetcher != nullptr) Py_XDECREF(call_quietly(g_fetcher_made, fetcher));
  return fetcher;
}

// torch's own collating asks too, whether it is in a worker at all.
bool asked_by_torch() {
  static PyObject* const key = interned("__name__");
  PyObject* globals = PyEval_GetGlobals();  // of the caller
  PyObject* name = globals == nullptr ? nullptr : PyDict_GetItemWithError(globals, key);
  if (name == nullptr || !PyUnicode_Check(name)) {
    PyErr_Clear();
    return false;
  }
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) PyErr_Clear();
  return text != nullptr && std::strncmp(text, "torch.utils.data.", 17) == 0;
}

PyObject* on_ask_which(PyObject* original, const CallArguments& a) {
  if (g_process.worker && !g_process.asked_which && loading().recording() && !asked_by_torch()) {
    g_process.asked_which = true;
    loading().add(LoaderPart::kAskedWhich, 1);
  }
  return call_of(original, a);
}

PyObject* on_start_workers(PyObject* original, const CallArguments& a) {
  if (a.count() < 2 || hot().state.load(std::memory_order_relaxed) != State::kAwake)
    return call_of(original, a);
  const int64_t begin_ns = monotonic_ns();
  PyObject* result = call_of(original, a);
  if (result == nullptr) return nullptr;
  PyObject* told = Py_BuildValue("(OOL)", a.values[0], a.values[1],
                                 static_cast<long long>(monotonic_ns() - begin_ns));
  if (told == nullptr)
    PyErr_Clear();
  else
    Py_XDECREF(call_quietly(g_workers_started, told));
  Py_XDECREF(told);
  return result;
}

}  // namespace

PyObject* loader_hook(Hook hook, uint8_t argument, PyObject* original, const CallArguments& a) {
  switch (hook) {
    case Hook::kLoaderFetch:
      return on_fetch(original, a);
    case Hook::kLoaderPart:
      return on_part(argument, original, a);
    case Hook::kLoaderPickle:
      return on_pickle(original, a);
    case Hook::kLoaderNext:
      return on_next(original, a);
    case Hook::kLoaderPoll:
      return on_poll(original, a);
    case Hook::kLoaderReceive:
      return on_receive(original, a);
    case Hook::kLoaderTryGet:
      return on_try_get(original, a);
    case Hook::kLoaderPin:
      return on_pin(original, a);
    case Hook::kLoaderFetcherMade:
      return on_fetcher_made(original, a);
    case Hook::kLoaderStart:
      return on_start_workers(original, a);
    case Hook::kLoaderAskWhich:
      return on_ask_which(original, a);
    default:
      return call_of(original, a);
  }
}

void set_loading_functions(PyObject* fetcher_made, PyObject* workers_started) {
  g_fetcher_made = Py_NewRef(fetcher_made);
  g_workers_started = Py_NewRef(workers_started);
}

void loads_for(PyObject* fetcher, uint32_t loader) { g_fetchers.put(fetcher, loader); }
void takes_for(PyObject* iterator, uint32_t loader) { g_iterators.put(iterator, loader); }

void be_worker() {
  if (!g_process.worker) look_at_resources(false, monotonic_ns());
  g_process.worker = true;
  g_process.last_end_ns = 0;
}

void flush_loading() {
  if (!loading().recording()) return;
  const int64_t now_ns = monotonic_ns();
  if (g_process.worker) look_at_resources(true, now_ns);
  loading().flush(now_ns);
}

void close_loading() {
  flush_loading();
  loading().close();
}

void forget_loading() {
  forget_transforms();
  g_process = {};
  g_fetchers = {};
  g_iterators = {};
  threads_fetching.store(0, std::memory_order_relaxed);
  loading_calls = {};
}

}  // namespace stepscope::bindings
