// What doctor looks at, a function a line. Each takes where to look, so that tests can look
// elsewhere.
//
// Thread safety: reentrant. A check never fails the program: it says what it found.
#pragma once

#include <string>
#include <vector>

#include "cli/identity.h"

namespace stepscope::cli {

enum class Health { kOk, kWarn, kFail };

struct Check {
  std::string name;  // snake_case
  Health health = Health::kOk;
  std::string found;  // a sentence
  std::string hint;   // for warn and fail
};

struct Surroundings {
  Environment environment;
  std::string binary;
  std::string cwd;
  std::string shm = "/dev/shm";
  std::string root;  // "" for /proc and /sys, else where they are below
};

std::vector<Check> check_all(const Surroundings& where);

Check check_shared_memory(const Surroundings& where);
Check check_segment_folder();
Check check_leftovers();
Check check_proc(const Surroundings& where);
Check check_cores(const Surroundings& where);
Check check_memory(const Surroundings& where);
Check check_python_part(const Surroundings& where);
Check check_python(const Surroundings& where);
Check check_run_folder(const Surroundings& where);
Check check_temporary(const Surroundings& where);
Check check_locale(const Surroundings& where);
Check check_store();

}  // namespace stepscope::cli
