#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/snapshot_paths.h"

namespace terrace {
namespace {

int64_t CheckedBatch(int64_t batch) {
  TERRACE_CHECK(batch >= 0 && batch <= SnapshotInfo::kMaxBatch);
  return batch;
}

}  // namespace

SnapshotWriter::SnapshotWriter(Env& env, const std::string& dir, int64_t batch)
    : env_(env),
      dir_(WithoutSlashes(dir)),
      batch_(CheckedBatch(batch)),
      path_(dir_ + "/" + BatchName(batch)),
      temporary_(fmt::format("{}/{}{}", dir_, kWriting, BatchName(batch))) {
  if (env_.Exists(path_))
    throw Error(ErrorCode::kUsage, path_ +
                                       ": there is a snapshot of this batch already: remove it, "
                                       "or use another directory");
  if (env_.Exists(temporary_)) RemoveTree(env_, temporary_);
  env_.MakeDirectory(temporary_ + "/tables");
}

SnapshotWriter::~SnapshotWriter() {
  if (renamed_) return;
  try {
    RemoveTree(env_, temporary_);
  } catch (const Error&) {  // RemoveSnapshotLeftovers does it
  }
}

void SnapshotWriter::AddFile(const std::string& name, std::string_view bytes) {
  StreamFile(name, [&](const Append& append) { append(bytes); });
}

void SnapshotWriter::StreamFile(const std::string& name,
                                const std::function<void(const Append&)>& write) {
  TERRACE_CHECK(IsSnapshotFile(name) && info_.FindFile(name) == nullptr);
  const std::unique_ptr<WritableFile> file = env_.OpenForWrite(temporary_ + "/" + name);
  Hasher128 hasher(0);
  int64_t size = 0;
  write([&](std::string_view piece) {
    file->Append(piece);
    hasher.Add(piece);
    size += static_cast<int64_t>(piece.size());
  });
  file->Close();
  info_.files.push_back({name, size, hasher.Result()});
}

std::string SnapshotWriter::TablePath(const std::string& name) const {
  return TableStorePath(temporary_, name);
}

void SnapshotWriter::AddTable(SnapshotTable table) {
  TERRACE_CHECK(info_.FindTable(table.name) == nullptr);
  table.settled = true;
  table.store_hash = HashStore(env_, TablePath(table.name));
  info_.tables.push_back(std::move(table));
}

void SnapshotWriter::Commit(SnapshotInfo info) {
  TERRACE_CHECK(!renamed_);
  info.format = SnapshotInfo::kFormat;
  info.batch = batch_;
  info.tables = std::move(info_.tables);
  info.files = std::move(info_.files);
  if (info.created.empty()) info.created = UtcNow();
  // The stores have synced their own directories, and WriteSnapshotManifest syncs this one.
  env_.SyncDirectory(temporary_ + "/tables");
  WriteSnapshotManifest(env_, temporary_, info);
  if (env_.Exists(path_))
    throw Error(ErrorCode::kUsage, path_ + ": there is a snapshot of this batch already");
  env_.Rename(temporary_, path_);
  renamed_ = true;
  env_.SyncDirectory(dir_);
}

}  // namespace terrace
