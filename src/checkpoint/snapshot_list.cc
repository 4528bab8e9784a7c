// Directories of snapshots: what is in them, and what goes.

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/snapshot_paths.h"
#include "tier/disk_files.h"

namespace terrace {
namespace {

// A crash in the middle leaves nothing under the snapshot's name: the new name is durable before
// the first file goes.
void RemoveSnapshot(Env& env, const std::string& dir, const SnapshotEntry& entry) {
  const std::string removing = fmt::format("{}/{}{}", dir, kRemoving, BatchName(entry.batch));
  if (env.Exists(removing)) RemoveTree(env, removing);
  env.Rename(entry.path, removing);
  env.SyncDirectory(dir);
  RemoveTree(env, removing);
}

std::string FirstLine(Env& env, const std::string& path) {
  const std::unique_ptr<SequentialFile> file = env.OpenForRead(path);
  std::string line(64, '\0');
  line.resize(file->Read(line.data(), line.size()));
  return line.substr(0, line.find('\n'));
}

}  // namespace

std::unique_ptr<FileLock> LockSnapshots(Env& env, const std::string& dir) {
  MakeDurableDirectory(env, dir);
  return env.Lock(WithoutSlashes(dir) + "/LOCK");
}

std::vector<SnapshotEntry> ListSnapshots(Env& env, const std::string& given) {
  const std::string dir = WithoutSlashes(given);
  std::vector<SnapshotEntry> found;
  for (const std::string& name : env.List(dir)) {
    const int64_t batch = BatchOfName(name);
    std::string path = dir + "/" + name;
    if (batch >= 0 && env.Exists(SnapshotManifestPath(path)))
      found.push_back({batch, std::move(path)});
  }
  return found;  // names of the same length sort like their numbers
}

void RemoveSnapshotLeftovers(Env& env, const std::string& given) {
  const std::string dir = WithoutSlashes(given);
  for (const std::string& name : env.List(dir))
    if (name.starts_with(kWriting) || name.starts_with(kRemoving))
      RemoveTree(env, dir + "/" + name);
}

std::vector<int64_t> ApplyRetention(Env& env, const std::string& given, int64_t keep_last,
                                    int64_t keep_every) {
  TERRACE_CHECK(keep_last >= 1 && keep_every >= 0);
  const std::string dir = WithoutSlashes(given);
  std::vector<SnapshotEntry> found = ListSnapshots(env, dir);
  found.resize(found.size() - std::min(found.size(), static_cast<size_t>(keep_last)));
  std::vector<int64_t> removed;
  for (const SnapshotEntry& entry : found) {
    if (keep_every > 0 && entry.batch % keep_every == 0) continue;
    const std::unique_ptr<FileLock> lock = env.TryLockDirectory(entry.path, LockMode::kAlone);
    if (lock == nullptr) continue;  // somebody reads it
    RemoveSnapshot(env, dir, entry);
    removed.push_back(entry.batch);
  }
  return removed;
}

StoredKind KindOfStored(Env& env, const std::string& given) {
  const std::string path = WithoutSlashes(given);
  if (!env.Exists(path + "/.")) return StoredKind::kNothing;
  if (!env.Exists(SnapshotManifestPath(path)))
    return ListSnapshots(env, path).empty() ? StoredKind::kNothing : StoredKind::kSnapshots;
  const bool snapshot = FirstLine(env, SnapshotManifestPath(path)).starts_with("terrace snapshot ");
  // One whose manifest is damaged is still told by its tables.
  return snapshot || env.IsDirectory(path + "/tables") ? StoredKind::kSnapshot : StoredKind::kStore;
}

}  // namespace terrace
