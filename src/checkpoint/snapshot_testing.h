// Small snapshots for tests: a store of rows that tell their version, and files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {

// A run that trains one table: each snapshot holds the rows of the store as it is then.
class SnapshotWork {
 public:
  // `scratch` is where the store is.
  SnapshotWork(Env& env, const std::string& scratch) : env_(env) {
    options_.row_bytes = 24;
    options_.page_bytes = 512;
    options_.partitions = 2;
    options_.memory_bytes = 8 << 20;
    options_.background = false;
    options_.durability = Durability::kScratch;
    options_.env = &env;
    store_ = DiskStore::Open(scratch, options_);
  }

  // Changes some rows, then writes the snapshot.
  void Write(const std::string& dir, int64_t batch) {
    Train(batch);
    SnapshotWriter writer(env_, dir, batch);
    Fill(&writer, batch);
    SnapshotInfo info;
    info.examples = 10 * batch;
    info.program = "terrace test";
    info.dense = {{"deep.weight", {3, 4}}, {"deep.bias", {4}}};
    writer.Commit(info);
  }

  void Train(int64_t batch) {
    std::vector<uint64_t> keys;
    const auto first = static_cast<uint64_t>(batch);
    for (uint64_t key = first; key < first + 20; ++key) keys.push_back(key);
    PutVersion(*store_, keys, first, &rows_);
  }

  void Fill(SnapshotWriter* writer, int64_t batch) {
    writer->AddFile("config.toml", "seed = 1\n");
    writer->StreamFile("dense", [&](const SnapshotWriter::Append& append) {
      for (int i = 0; i < 3; ++i) append(DensePiece(batch));
    });
    store_->Snapshot(writer->TablePath("main"));
    const PartitionStats total = store_->stats().total;
    writer->AddTable({.name = "main",
                      .row_bytes = static_cast<int64_t>(store_->row_bytes()),
                      .schema = "dim 4, sgd",
                      .rows_min = total.rows_min(),
                      .rows_max = total.rows_max()});
  }

  static std::string DensePiece(int64_t batch) { return "dense of " + std::to_string(batch) + ";"; }

  const Contents& rows() const { return rows_; }
  DiskStore& store() { return *store_; }

  // What is not as the snapshot of this batch was written, or nothing.
  static std::string Difference(Env& env, const std::string& path, int64_t batch,
                                const Contents& rows) {
    const std::unique_ptr<Snapshot> snapshot = Snapshot::Open(env, path);
    if (snapshot->info().batch != batch || snapshot->info().examples != 10 * batch)
      return path + ": is of batch " + std::to_string(snapshot->info().batch);
    const std::string piece = DensePiece(batch);
    if (snapshot->ReadFile("dense") != piece + piece + piece) return path + ": dense is wrong";
    if (snapshot->ReadFile("config.toml") != "seed = 1\n") return path + ": config is wrong";
    DiskOptions options;
    options.memory_bytes = 8 << 20;
    options.env = &env;
    const auto store = DiskStore::OpenReadOnly(snapshot->TablePath("main"), options);
    return StoreDifference(*store, rows);
  }

 private:
  Env& env_;
  DiskOptions options_;
  std::unique_ptr<DiskStore> store_;
  Contents rows_;
};

}  // namespace terrace
