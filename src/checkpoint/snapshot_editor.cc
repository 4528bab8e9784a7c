#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/snapshot_paths.h"

namespace terrace {

SnapshotEditor::SnapshotEditor(Env& env, const std::string& path)
    : env_(env), path_(WithoutSlashes(path)) {
  if (!env.Exists(SnapshotManifestPath(path_)))
    throw Error(ErrorCode::kUsage, path_ + ": is not a snapshot (it has no MANIFEST)");
  lock_ = env.TryLockDirectory(path_, LockMode::kAlone);
  if (lock_ == nullptr)
    throw Error(ErrorCode::kUsage, path_ +
                                       ": another process has the snapshot open: wait until that "
                                       "one ends, or stop it");
  info_ = ReadSnapshotManifest(env, path_);
}

SnapshotTable& SnapshotEditor::Find(const std::string& name) {
  for (SnapshotTable& table : info_.tables)
    if (table.name == name) return table;
  throw Error(ErrorCode::kUsage, fmt::format("{}: has no table \"{}\"", path_, name));
}

std::string SnapshotEditor::BeginTable(const std::string& name) {
  SnapshotTable& table = Find(name);
  if (table.settled) {
    if (HashStore(env_, TableStorePath(path_, name)) != table.store_hash)
      throw Error(ErrorCode::kCorruption,
                  fmt::format("{}: table {} is not the one that the snapshot was written with: it "
                              "is damaged or was changed by hand; nothing was changed",
                              path_, name));
    table.settled = false;
    WriteSnapshotManifest(env_, path_, info_);
  }
  return TableStorePath(path_, name);
}

void SnapshotEditor::EndTable(const std::string& name, int64_t rows_min, int64_t rows_max) {
  SnapshotTable& table = Find(name);
  table.rows_min = rows_min;
  table.rows_max = rows_max;
  table.store_hash = HashStore(env_, TableStorePath(path_, name));
  table.settled = true;
  WriteSnapshotManifest(env_, path_, info_);
}

}  // namespace terrace
