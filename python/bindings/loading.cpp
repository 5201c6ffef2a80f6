#include "loading.h"

#include <nanobind/stl/string.h>

#include "loader_hooks.h"
#include "loader_timing.h"
#include "open_options.h"
#include "session.h"
#include "transform_slot.h"

namespace nb = nanobind;

namespace stepscope::bindings {

void bind_loading(nb::module_& m) {
  m.def(
      "open_loading",
      [](const nb::kwargs& given) { raise_unless(loading().open(open_options(given))); },
      "Make this process's segment for loading. Raises RuntimeError when there is no room.");
  m.def("loading_is_open", [] { return loading().is_open(); });
  m.def(
      "set_loading_functions",
      [](nb::object fetcher_made, nb::object workers_started) {
        set_loading_functions(fetcher_made.ptr(), workers_started.ptr());
      },
      nb::kw_only(), nb::arg("fetcher_made"), nb::arg("workers_started"));
  m.def(
      "tell_loader",
      [](uint32_t number, uint8_t flags, uint32_t workers, uint32_t prefetch_factor,
         uint32_t batch_size, const std::string& dataset) {
        loading().loader(number, flags,
                         wire::pack_loader(number, workers, prefetch_factor, batch_size),
                         dataset.c_str());
      },
      nb::kw_only(), nb::arg("number"), nb::arg("flags"), nb::arg("workers"),
      nb::arg("prefetch_factor"), nb::arg("batch_size"), nb::arg("dataset"));
  m.def("tell_worker", [](uint32_t loader, uint32_t number, int32_t pid) {
    loading().worker(loader, number, pid);
  });
  m.def("tell_started", [](uint32_t loader, int64_t ns) { loading().started(loader, ns); });
  m.def("tell_epoch", [](uint32_t loader) { loading().epoch(loader); });
  m.def("loads_for", [](nb::object fetcher, uint32_t loader) { loads_for(fetcher.ptr(), loader); });
  m.def("takes_for",
        [](nb::object iterator, uint32_t loader) { takes_for(iterator.ptr(), loader); });
  m.def("be_worker", [] { be_worker(); });
  m.def("flush_loading", [] { flush_loading(); });
  m.def(
      "name_transform", [](const std::string& name) { return loading().name(name.c_str()); },
      "Its number, for time_transform and timed_call; 0 when there is no room.");
  m.def("time_transform", [](nb::object transform, uint8_t number) {
    return time_transform(transform.ptr(), number);
  });
  for (size_t i = 0; i < kLoaderParts; ++i) {
    std::string name = "PART_";
    for (const char c : kLoaderPartNames[i])
      name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    m.attr(name.c_str()) = static_cast<uint8_t>(i);
  }
  m.attr("LOADER_PERSISTENT") = static_cast<uint8_t>(kLoaderPersistent);
  m.attr("LOADER_PINNED") = static_cast<uint8_t>(kLoaderPinned);
  m.attr("LOADER_ITERABLE") = static_cast<uint8_t>(kLoaderIterable);
  m.attr("LOADER_OWN_EPOCH") = static_cast<uint8_t>(kLoaderOwnEpoch);
  m.attr("LOADER_ANY_ORDER") = static_cast<uint8_t>(kLoaderAnyOrder);
  m.attr("LOADER_SPAWNED") = static_cast<uint8_t>(kLoaderSpawned);
  m.attr("LOADER_HANDLES") = static_cast<uint8_t>(kLoaderHandles);
  m.attr("LOADER_SPLITS") = static_cast<uint8_t>(kLoaderSplits);
}

}  // namespace stepscope::bindings
