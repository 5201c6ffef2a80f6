// stepscope._native: a table of contents. Hooks are raw C types (see timed_call.h, module_slot.h); what runs once is
// nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "contexts.h"
#include "groups.h"
#include "loader_hooks.h"
#include "loading.h"
#include "marks.h"
#include "module_slot.h"
#include "open_options.h"
#include "session.h"
#include "stragglers.h"
#include "tensor.h"
#include "timed_call.h"

namespace nb = nanobind;
using namespace stepscope;            // NOLINT: a binding file
using namespace stepscope::bindings;  // NOLINT

namespace {

PyObject* keep(nb::handle object) { return object.is_none() ? nullptr : object.inc_ref().ptr(); }

void bind_session(nb::module_& m) {
  m.def(
      "open_segment",
      [](const nb::kwargs& given) { raise_unless(rec().open(open_options(given))); },
      "Make this process's segment. Raises RuntimeError when there is no room.");
  m.def("close_segment", [] {
    close_loading();
    rec().close();
  });
  m.def(
      "reopen",
      [] {
        if (hot().state.load() == State::kAsleep || rec().is_open()) return false;
        forget_all_groups();
        forget_modules();
        hot().state.store(State::kAsleep);
        return true;
      },
      "After close_segment or switch_off: the next training event opens another segment.");
  m.def("switch_off", [] { hot().state.store(State::kOff); }, "Record nothing in this process.");
  m.def(
      "after_fork",
      [] {
        forget_all_groups();
        forget_loading();
        hot().state.store(State::kAsleep);
      },
      "In a forked child: silent until its own first training event.");
  m.def("is_recording", [] { return hot().state.load() == State::kAwake && rec().recording(); });
  m.def(
      "wake", [] { return awake(); }, "Open the segment now; false when nothing is recorded here.");
  m.def("pause", [] { rec().pause(); });
  m.def("resume", [] { rec().resume(); });
  m.def(
      "set_live_view",
      [](nb::object function) {
        session().live_view = keep(function);  // the last one is kept: it may be running
        if (session().live_view != nullptr)
          hot().rare.fetch_or(Hot::kLiveView);
        else
          hot().rare.fetch_and(static_cast<uint8_t>(~Hot::kLiveView));
      },
      nb::arg("function").none(), "Called after each backward; None: no more.");
  m.def("set_fact", [](uint32_t fact) { rec().set_fact(fact); });
  m.def("set_ranks", [](int rank, int local_rank, int world_size, int local_world_size) {
    rec().set_ranks(rank, local_rank, world_size, local_world_size);
  });
  m.def(
      "set_callbacks",
      [](nb::object open, nb::object classify, nb::object rearm, nb::object watch_zero_grad,
         nb::object loader_number, nb::object epoch_begins, nb::object epoch_ended,
         nb::object group_number) {
        session().open = keep(open);
        session().classify = keep(classify);
        session().rearm = keep(rearm);
        session().watch_zero_grad = keep(watch_zero_grad);
        set_loader_functions(loader_number.ptr(), epoch_begins.ptr(), epoch_ended.ptr());
        set_group_number_function(group_number.ptr());
      },
      nb::kw_only(), nb::arg("open"), nb::arg("classify"), nb::arg("rearm"),
      nb::arg("watch_zero_grad"), nb::arg("loader_number"), nb::arg("epoch_begins"),
      nb::arg("epoch_ended"), nb::arg("group_number"));
  m.def(
      "set_torch",
      [](nb::object is_grad_enabled, nb::object tensor_type, nb::object disable_torch_function,
         nb::object queue_callback) {
        session().is_grad_enabled = keep(is_grad_enabled);
        find_grad_mode();
        set_tensor_type(keep(tensor_type), keep(disable_torch_function));
        session().queue_callback = keep(queue_callback);
      },
      nb::kw_only(), nb::arg("is_grad_enabled"), nb::arg("tensor_type"),
      nb::arg("disable_torch_function").none(), nb::arg("queue_callback").none());
  m.def(
      "set_reducer_owner",
      [](nb::object weak, nb::object group) {
        session().reducer_owner = keep(weak);
        set_reducer_group(group.is_none() ? nullptr : group.ptr());
        hot().reducer = session().reducer_owner != nullptr;
      },
      nb::arg("weak").none(), nb::arg("group").none());
  m.def(
      "add_group", [](uint64_t id, uint32_t members) { return rec().group(id, members); },
      nb::arg("id"), nb::arg("members"), "Its number in the segment; 0 when there is no room.");
  m.def(
      "forget_group", [](uintptr_t id) { forget_group(id); }, "The group with this id() is gone.");
}

void bind_hooks(nb::module_& m) {
  nb::enum_<Hook>(m, "Hook")
      .value("SPAN", Hook::kSpan)
      .value("ITER", Hook::kIter)
      .value("ITER_INIT", Hook::kIterInit)
      .value("FETCH", Hook::kFetch)
      .value("BACKWARD", Hook::kBackward)
      .value("FORWARD", Hook::kForward)
      .value("SYNC", Hook::kSync)
      .value("ISSUE", Hook::kIssue)
      .value("WAIT", Hook::kWait)
      .value("MAYBE_STEP", Hook::kMaybeStep)
      .value("TO_DEVICE", Hook::kToDevice)
      .value("PROFILER_OPEN", Hook::kProfilerOpen)
      .value("PROFILER_CLOSE", Hook::kProfilerClose)
      .value("LOADER_FETCH", Hook::kLoaderFetch)
      .value("LOADER_PART", Hook::kLoaderPart)
      .value("LOADER_PICKLE", Hook::kLoaderPickle)
      .value("LOADER_NEXT", Hook::kLoaderNext)
      .value("LOADER_POLL", Hook::kLoaderPoll)
      .value("LOADER_RECEIVE", Hook::kLoaderReceive)
      .value("LOADER_TRY_GET", Hook::kLoaderTryGet)
      .value("LOADER_PIN", Hook::kLoaderPin)
      .value("LOADER_FETCHER_MADE", Hook::kLoaderFetcherMade)
      .value("LOADER_START", Hook::kLoaderStart)
      .value("LOADER_ASK_WHICH", Hook::kLoaderAskWhich)
      .value("RECOMPUTE_ENTER", Hook::kRecomputeEnter)
      .value("RECOMPUTE_EXIT", Hook::kRecomputeExit)
      .value("RECOMPUTE", Hook::kRecompute);
  m.def(
      "timed_call",
      [](nb::object original, Hook hook, uint8_t argument) {
        return nb::steal(timed_call(original.ptr(), hook, argument));
      },
      nb::arg("original"), nb::arg("hook"), nb::arg("argument") = 0);
  m.def("named_call", [](nb::object original, const std::string& name) {
    return nb::steal(named_call(original.ptr(), name.c_str()));
  });
  m.def("set_module_type", [](nb::object type) { set_module_type(keep(type)); });
  m.def("watch_all_classes", [] { watch_all_classes(); });
  m.def("step_context", [] { return nb::steal(step_context()); });
  m.def("phase_context",
        [](const std::string& name) { return nb::steal(phase_context(name.c_str())); });
}

void bind_constants(nb::module_& m) {
  m.attr("FACT_ROOT_MODULE") = static_cast<uint32_t>(wire::kFactRootModule);
  m.attr("FACT_ACCELERATOR") = static_cast<uint32_t>(wire::kFactAccelerator);
  m.attr("FACT_DDP") = static_cast<uint32_t>(wire::kFactDdp);
  m.attr("FACT_SAME_ORDER") = static_cast<uint32_t>(wire::kFactSameOrder);
  m.attr("FACT_FSDP") = static_cast<uint32_t>(wire::kFactFsdp);
  m.attr("PHASE_CHECKPOINT") = static_cast<uint8_t>(Phase::kCheckpoint);
  m.attr("PHASE_PROFILER") = static_cast<uint8_t>(Phase::kProfiler);
}

}  // namespace

NB_MODULE(_native, m) {
  if (!init_timed_call() || !init_contexts()) throw nb::python_error();
  bind_session(m);
  bind_hooks(m);
  bind_constants(m);
  bind_stragglers(m);
  bind_loading(m);
  if (PyModule_AddFunctions(m.ptr(), mark_functions) != 0) throw nb::python_error();
}
