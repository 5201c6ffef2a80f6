// The folder a run leaves its files in: its name, and the place where it can be made.
//
// Thread safety: reentrant. Invariant: a folder is taken by one process only (mkdir decides), so
// that ranks which start at the same moment never share one by accident. A run always finds a
// place: the current folder, else TMPDIR, /tmp, /dev/shm (said in a notice); only wrong use is an
// error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/identity.h"

namespace stepscope::cli {

// "train" of `python -u src/train.py --lr 1`, `python -m pkg.train`, `torchrun --nproc-per-node 2
// train.py`.
std::string script_stem(const std::vector<std::string>& command);

// The local time as 20261129-181827.
std::string time_label(int64_t wall_ns);

// A name given by the user must do as the name of one folder.
Status check_name(const std::string& name);

struct FolderRequest {
  std::string run_dir;  // --run-dir, or empty
  bool overwrite = false;
  std::string name;  // --name, else stem and time
  std::string cwd;
  std::string run_id;
  bool launcher_id =
      false;  // the same id may come again: its earlier folder is no reason to refuse
  Environment environment;
};

struct RunFolder {
  std::string path;  // absolute; empty when nothing can be written anywhere
  std::string name;  // with -2, -3 when the folder has it
  std::vector<std::string> notices;
};

Result<RunFolder> make_run_folder(const FolderRequest& request);

// A folder of that name in the first fallback place that takes it.
Result<std::string> make_fallback_folder(const std::string& name, const Environment& environment);

// What holds a run: run.db or summary.json.
bool holds_run(const std::string& folder);

// Removes a run's own files, and the folder if nothing else is in it.
void remove_run_files(const std::string& folder);

// Where runs go when the current folder cannot hold them, best first.
std::vector<std::string> fallback_places(const Environment& environment);

}  // namespace stepscope::cli
