// Snapshots of a training run: directories that appear whole, are opened read-only anywhere, and
// go when they are not needed. docs/snapshots.md has the files.
//
// A snapshots directory holds one directory a snapshot, named by its batch (12 digits). One that is
// being written or removed has a name that starts with a dot. Who writes holds its lock.
//
// Threads: an object belongs to one thread at a time; the const functions of a Snapshot may be
// called from several. Failure: Error(kIo) from the system, Error(kCorruption) with the file and
// what to do, Error(kUsage) for what is not there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot_manifest.h"

namespace terrace {

// Makes `dir` and locks it for the one process that writes snapshots there. Throws Error(kIo) if
// another has it.
std::unique_ptr<FileLock> LockSnapshots(Env& env, const std::string& dir);

// Writes one snapshot; nothing is visible before Commit. The caller holds the lock of `dir`.
class SnapshotWriter {
 public:
  // Throws Error(kUsage) if there is a snapshot of this batch. What an earlier writer of this batch
  // left is removed.
  SnapshotWriter(Env& env, const std::string& dir, int64_t batch);
  ~SnapshotWriter();  // without Commit: removes what was written, as far as that works
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Durable when it returns.
  void AddFile(const std::string& name, std::string_view bytes);
  // For a large one: `write` is called once and gives the bytes in pieces.
  using Append = std::function<void(std::string_view)>;
  void StreamFile(const std::string& name, const std::function<void(const Append&)>& write);

  // Where the table's store belongs: give it to DiskStore::Snapshot, then call AddTable.
  std::string TablePath(const std::string& name) const;
  // store_hash and settled are filled in.
  void AddTable(SnapshotTable table);

  // Makes it durable and visible. format, batch, tables and files are filled in, `created` if it is
  // empty. If it throws, the snapshot is complete or invisible, and the writer is of no use any
  // more; complete only where the sync of `dir` failed, so that a crash may still lose it.
  void Commit(SnapshotInfo info);

  const std::string& path() const { return path_; }  // once committed

 private:
  Env& env_;
  const std::string dir_;
  const int64_t batch_;
  const std::string path_;       // in the end
  const std::string temporary_;  // until then
  SnapshotInfo info_;            // tables and files so far
  bool renamed_ = false;
};

// A snapshot, open for reading. While it is, nobody removes or changes it.
class Snapshot {
 public:
  // `path`: a snapshot, or a snapshots directory, of which the latest is taken. Works on a medium
  // that cannot be written or locked.
  static std::unique_ptr<Snapshot> Open(Env& env, const std::string& path);

  const SnapshotInfo& info() const { return info_; }
  const std::string& path() const { return path_; }
  Env& env() const { return env_; }

  // Size and hash are checked.
  std::string ReadFile(const std::string& name) const;
  // In pieces; throws after the last one if size or hash are wrong.
  void ReadFile(const std::string& name, const std::function<void(std::string_view)>& sink) const;
  // The directory of the table's store, for DiskStore::OpenReadOnly; the hash of its manifest is
  // checked.
  std::string TablePath(const std::string& name) const;

 private:
  Snapshot(Env& env, std::string path, SnapshotInfo info, std::unique_ptr<FileLock> lock);

  Env& env_;
  const std::string path_;
  const SnapshotInfo info_;
  const std::unique_ptr<FileLock> lock_;
};

// Changes the rows of a snapshot in place. A crash at any time leaves a snapshot that opens: of
// each table, the rows before or after the change.
class SnapshotEditor {
 public:
  // Throws Error(kUsage) if another process has the snapshot open.
  SnapshotEditor(Env& env, const std::string& path);

  const SnapshotInfo& info() const { return info_; }
  // Call before the first change. Marks the table as not settled.
  std::string BeginTable(const std::string& name);
  // When the store is committed and closed. Makes the change part of the snapshot.
  void EndTable(const std::string& name, int64_t rows_min, int64_t rows_max);
  // A line of the lineage, for the tables that follow.
  void AddLineage(const std::string& line) { info_.lineage.push_back(line); }

 private:
  SnapshotTable& Find(const std::string& name);
  void Write();

  Env& env_;
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
  SnapshotInfo info_;
};

// --- directories of snapshots ---

struct SnapshotEntry {
  int64_t batch = 0;
  std::string path;
};
// The complete ones by batch, ascending. Throws Error(kIo) if `dir` cannot be listed.
std::vector<SnapshotEntry> ListSnapshots(Env& env, const std::string& dir);

// Removes what crashes left. The caller holds the lock of `dir`.
void RemoveSnapshotLeftovers(Env& env, const std::string& dir);

// Removes all but the last `keep_last` (at least 1) and those whose batch is a multiple of
// `keep_every` (0: none). One that is open stays until the next call. Returns the batches removed.
// The caller holds the lock of `dir`.
std::vector<int64_t> ApplyRetention(Env& env, const std::string& dir, int64_t keep_last,
                                    int64_t keep_every);

// What a path given by a user is, by what is in it. Nothing is checked.
enum class StoredKind { kNothing, kSnapshot, kSnapshots, kStore };
StoredKind KindOfStored(Env& env, const std::string& path);

}  // namespace terrace
