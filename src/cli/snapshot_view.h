// A snapshot with its config: what commands need to read rows as numbers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot.h"
#include "table/schema.h"
#include "tier/disk_store.h"

namespace terrace {

// One thread.
class SnapshotView {
 public:
  // `path` as in Snapshot::Open. Throws what that throws, and Error(kCorruption) if the config.toml
  // is not a config.
  SnapshotView(Env& env, const std::string& path);

  const Snapshot& snapshot() const { return *snapshot_; }
  const SnapshotInfo& info() const { return snapshot_->info(); }
  // Of a table of info(). Throws Error(kCorruption) if the config does not have it, or if its rows
  // are not of the size that the MANIFEST says.
  const TableSchema& Schema(const std::string& table) const;
  // For reading, without a limit on memory.
  std::unique_ptr<DiskStore> OpenTable(const std::string& table) const;

 private:
  std::unique_ptr<Snapshot> snapshot_;
  std::vector<TableSchema> schemas_;
};

// A budget is a limit: what is used follows from the store.
DiskOptions WithoutMemoryLimit(Env* env);

// Rows of a store as numbers.
class RowDecoder {
 public:
  RowDecoder(const TableSchema& schema, size_t row_bytes);

  const RowLayout& layout() const { return layout_; }
  // [count, layout.format.numbers]: weights, then state. Valid until the next call.
  std::span<const float> Decode(const std::byte* rows, size_t count);
  // Zeros if the table does not count.
  RowStats Stats(const std::byte* row) const;

 private:
  const RowLayout layout_;
  const size_t row_bytes_;
  std::vector<uint32_t> positions_;
  std::vector<float> numbers_;
};

}  // namespace terrace
