#include "base/clock.h"

#include <dlfcn.h>

namespace stepscope {

ClockFunction vdso_clock() {
  void* vdso = dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (vdso == nullptr) return clock_gettime;
#if defined(__aarch64__)
  void* symbol = dlsym(vdso, "__kernel_clock_gettime");
#else
  void* symbol = dlsym(vdso, "__vdso_clock_gettime");
#endif
  dlclose(vdso);  // the kernel's; it stays
  return symbol == nullptr ? clock_gettime : reinterpret_cast<ClockFunction>(symbol);
}

}  // namespace stepscope
