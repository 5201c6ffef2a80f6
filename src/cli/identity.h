// Which run a process belongs to. Pure.
//
// Processes that a launcher starts side by side must meet in one segment folder without talking to
// each other, so the folder's key is made from what the launcher gave all of them. First that
// applies:
//   --run-id; TORCHELASTIC_RUN_ID unless "none"; Slurm's job and step;
//   MASTER_ADDR:MASTER_PORT with WORLD_SIZE > 1;
//   RANK with WORLD_SIZE > 1: the parent process; else random, and nobody joins.
// A pid namespace counts as a node of its own (two containers may share /dev/shm, but cannot see
// each other's processes): its number is part of the key.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stepscope::cli {

using Environment = std::map<std::string, std::string>;
Environment current_environment();

struct Identity {
  std::string id;       // as views show it
  std::string key;      // name of the segment folder: at most 60 bytes of [A-Za-z0-9._-]
  bool shared = false;  // others may have the same
  bool launcher =
      false;  // given by a launcher, not by --run-id: a restart may bring the same id again
};

struct IdentityInput {
  std::string run_id_flag;
  Environment environment;
  int32_t parent_pid = 0;
  int64_t parent_start = 0;
  uint64_t pid_namespace = 0;
  uint64_t random = 0;
};

Identity choose_identity(const IdentityInput& input);

// The rank that a launcher gave: RANK, else Slurm's. 0 where there is none.
int rank_of(const Environment& environment);

uint64_t random_number();
uint64_t own_pid_namespace();  // 0 when /proc does not tell

}  // namespace stepscope::cli
