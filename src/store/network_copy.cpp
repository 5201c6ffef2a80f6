#include "store/network_copy.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/text.h"

namespace stepscope::store {
namespace {

// f_type of file systems that other machines or a user process stand behind (linux/magic.h has only
// some of them).
constexpr std::array<uint32_t, 17> kNetwork = {
    0x6969,      // NFS
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB2
    0x517b,      // SMB
    0x65735546,  // FUSE
    0x01021997,  // 9P
    0x00c36400,  // Ceph
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x5346414f,  // AFS (OpenAFS)
    0x6b414653,  // AFS (kernel)
    0x73757245,  // Coda
    0x7461636f,  // OCFS2
    0x01161970,  // GFS2
    0x19830326,  // BeeGFS
    0xaad7aaea,  // PanFS
    0x786f4256,  // vboxsf
};

std::string absolute(const std::string& folder) {
  char* real = realpath(folder.c_str(), nullptr);
  std::string path = real == nullptr ? folder : real;
  std::free(real);
  return path;
}

// FNV-1a: only has to tell the run folders of one user apart.
std::string hash(const std::string& text) {
  uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(h));
  return hex.data();
}

// A directory that is ours, not a link, and closed to others.
bool is_private(const std::string& path) {
  struct stat s;
  return lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == getuid() &&
         (s.st_mode & 077) == 0;
}

std::vector<std::string> temporary_folders() {
  std::vector<std::string> folders;
  if (const char* t = std::getenv("TMPDIR"); t != nullptr && *t == '/') folders.emplace_back(t);
  folders.emplace_back("/tmp");
  folders.emplace_back("/dev/shm");
  return folders;
}

std::string private_root(const std::string& temporary) {
  return temporary + "/stepscope-" + std::to_string(getuid());
}
std::string private_folder(const std::string& temporary, const std::string& run_folder) {
  return private_root(temporary) + "/db-" + hash(absolute(run_folder));
}

}  // namespace

NetworkPolicy& network_policy() {
  static NetworkPolicy policy;
  return policy;
}

bool is_network_file_system(const std::string& folder) {
  struct statfs s;
  if (statfs(folder.c_str(), &s) != 0) return false;
  for (const uint32_t type : kNetwork)
    if (static_cast<uint32_t>(s.f_type) == type) return true;
  return false;
}

Result<Placement> place(const std::string& run_folder) {
  const Placement in_place = find_placed(run_folder);
  if (in_place.copied() || !network_policy().is_network(run_folder)) return in_place;
  std::string why;
  for (const std::string& temporary : temporary_folders()) {
    const std::string root = private_root(temporary),
                      folder = private_folder(temporary, run_folder);
    if (is_network_file_system(temporary)) {
      why += "; " + temporary + ": a network file system too";
      continue;
    }
    const bool made = (mkdir(root.c_str(), 0700) == 0 || errno == EEXIST) &&
                      (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
    if (made && is_private(root) && is_private(folder))
      return Placement{in_place.final_path, folder + "/run.db"};
    why += "; " + root + ": " + (made ? "not a private folder of this user" : errno_text());
  }
  return Error{"could not find a local folder for the database of " + run_folder +
                   ", which is on a network file system" + why,
               "set TMPDIR to a folder on a local disk"};
}

Placement find_placed(const std::string& run_folder) {
  Placement placement{run_folder + "/run.db", run_folder + "/run.db"};
  if (!network_policy().is_network(run_folder)) return placement;
  for (const std::string& temporary : temporary_folders()) {
    const std::string folder = private_folder(temporary, run_folder);
    if (is_private(private_root(temporary)) && is_private(folder) &&
        access((folder + "/run.db").c_str(), R_OK) == 0)
      return {placement.final_path, folder + "/run.db"};
  }
  return placement;
}

Status copy_to_final(Database& live, const Placement& placement) {
  const std::string part = placement.final_path + ".part";
  const auto failed = [&](int code, sqlite3* handle) -> Status {
    Error error = database_error("copy " + placement.live_path + " to", placement.final_path, code,
                                 handle == nullptr ? 0 : sqlite3_system_errno(handle),
                                 handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle));
    sqlite3_close(handle);
    unlink(part.c_str());
    return error;
  };
  unlink(part.c_str());
  sqlite3* target = nullptr;
  int code =
      sqlite3_open_v2(part.c_str(), &target,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) return failed(code, target);
  sqlite3_backup* backup = sqlite3_backup_init(target, "main", live.handle(), "main");
  if (backup == nullptr) return failed(sqlite3_errcode(target), target);
  sqlite3_backup_step(backup, -1);
  code = sqlite3_backup_finish(backup);
  // The copied header says WAL; a copy is one file. Exclusive: no shared memory on a file system
  // without it.
  if (code == SQLITE_OK)
    code = sqlite3_exec(target, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE",
                        nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failed(code, target);
  code = sqlite3_close(target);
  if (code != SQLITE_OK) return failed(code, nullptr);
  if (std::rename(part.c_str(), placement.final_path.c_str()) != 0) {
    const int error = errno;
    unlink(part.c_str());
    return database_error("copy " + placement.live_path + " to", placement.final_path, SQLITE_IOERR,
                          error, "rename failed");
  }
  return ok();
}

void remove_live(const Placement& placement) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    unlink((placement.live_path + suffix).c_str());
  const std::string folder = placement.live_path.substr(0, placement.live_path.rfind('/'));
  rmdir(folder.c_str());
}

}  // namespace stepscope::store
