#include "checkpoint/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/snapshot_paths.h"
#include "tier/disk_manifest.h"

namespace terrace {
namespace {

constexpr const char* kUseAnother = "use another snapshot (terrace snapshot list)";

[[noreturn]] void FailNothing(Env& env, const std::string& path) {
  if (!env.Exists(path))
    throw Error(ErrorCode::kUsage, path + ": there is no such snapshot; check the path");
  throw Error(ErrorCode::kUsage, path +
                                     ": is neither a snapshot (it has no MANIFEST) nor a directory "
                                     "with a complete snapshot in it");
}

// The directory's contents are what the lock protects: not those of another that has its name now.
bool StillAt(Env& env, const std::string& path, const FileStatus& before) {
  if (!env.Exists(SnapshotManifestPath(path))) return false;
  const FileStatus now = env.Status(path);
  return now.device == before.device && now.inode == before.inode;
}

std::unique_ptr<FileLock> LockOne(Env& env, const std::string& path, bool* gone) {
  const FileStatus before = env.Status(path);
  std::unique_ptr<FileLock> lock = env.TryLockDirectory(path, LockMode::kShared);
  *gone = lock != nullptr && !StillAt(env, path, before);
  return lock;
}

}  // namespace

Snapshot::Snapshot(Env& env, std::string path, SnapshotInfo info, std::unique_ptr<FileLock> lock)
    : env_(env), path_(std::move(path)), info_(std::move(info)), lock_(std::move(lock)) {}

std::unique_ptr<Snapshot> Snapshot::Open(Env& env, const std::string& given) {
  constexpr int kAttempts = 10;  // retention may remove one between the list and the lock
  const std::string path = WithoutSlashes(given);
  for (int attempt = 0;; ++attempt) {
    const bool last = attempt + 1 == kAttempts;
    std::string chosen = path;
    if (!env.Exists(SnapshotManifestPath(path))) {
      if (!env.Exists(path + "/.")) FailNothing(env, path);
      const std::vector<SnapshotEntry> found = ListSnapshots(env, path);
      if (found.empty()) FailNothing(env, path);
      chosen = found.back().path;
    }
    bool gone = false;
    std::unique_ptr<FileLock> lock;
    try {
      lock = LockOne(env, chosen, &gone);
    } catch (const Error&) {
      if (last || env.Exists(chosen)) throw;
      gone = true;
    }
    if (gone && !last) continue;
    if (lock == nullptr)
      throw Error(ErrorCode::kIo,
                  chosen +
                      ": is being removed or changed by another process: wait until that one "
                      "ends, or use another snapshot");
    if (gone) FailNothing(env, chosen);
    SnapshotInfo info = ReadSnapshotManifest(env, chosen);
    return std::unique_ptr<Snapshot>(
        new Snapshot(env, std::move(chosen), std::move(info), std::move(lock)));
  }
}

std::string Snapshot::ReadFile(const std::string& name) const {
  std::string bytes;
  ReadFile(name, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void Snapshot::ReadFile(const std::string& name,
                        const std::function<void(std::string_view)>& sink) const {
  const SnapshotFile* const file = info_.FindFile(name);
  if (file == nullptr)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: its MANIFEST names no file \"{}\": {}", path_, name, kUseAnother));
  const std::string path = path_ + "/" + name;
  const auto check_size = [&](int64_t size) {
    if (size == file->bytes) return;
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: has {} bytes, but was written with {}: the file is damaged; {}",
                            path, size, file->bytes, kUseAnother));
  };
  if (!env_.Exists(path))
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: the file is missing from the snapshot; {}", path, kUseAnother));
  check_size(env_.FileSize(path));
  const std::unique_ptr<SequentialFile> input = env_.OpenForRead(path);
  Hasher128 hasher(0);
  std::vector<char> buffer(1 << 16);
  int64_t size = 0;
  while (const size_t n = input->Read(buffer.data(), buffer.size())) {
    size += static_cast<int64_t>(n);
    if (size > file->bytes) break;
    hasher.Add({buffer.data(), n});
    sink({buffer.data(), n});
  }
  check_size(size);
  if (hasher.Result() != file->hash)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: its hash is {}, but it was written with {}: the file is damaged; "
                            "{}",
                            path, HashText(hasher.Result()), HashText(file->hash), kUseAnother));
}

std::string Snapshot::TablePath(const std::string& name) const {
  const SnapshotTable* const table = info_.FindTable(name);
  if (table == nullptr) {
    std::vector<std::string> names;
    for (const SnapshotTable& other : info_.tables) names.push_back(other.name);
    throw Error(ErrorCode::kUsage, fmt::format("{}: has no table \"{}\"; its tables: {}", path_,
                                               name, fmt::join(names, ", ")));
  }
  const std::string store = TableStorePath(path_, name);
  const std::string manifest = ManifestPath(store);
  if (!env_.Exists(manifest))
    throw Error(ErrorCode::kCorruption, fmt::format("{}: the file is missing from the snapshot; {}",
                                                    manifest, kUseAnother));
  if (table->settled && HashStore(env_, store) != table->store_hash)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: is not the one that the snapshot was written with: the table is "
                            "damaged or was changed by hand; {}",
                            manifest, kUseAnother));
  return store;
}

}  // namespace terrace
