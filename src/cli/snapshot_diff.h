// What changed from one snapshot to another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/snapshot_view.h"
#include "tier/disk_store.h"

namespace terrace {

struct RowsDiff {
  int64_t added = 0, removed = 0, changed = 0, same = 0;
  // The first of each, at most as many as asked for.
  std::vector<uint64_t> added_keys, removed_keys, changed_keys;
};

struct DiffOptions {
  size_t keys = 0;  // examples of each kind
  std::function<void(int64_t rows)> progress;
};
// Called for each row that both have with different bytes. May be null.
using ChangedRow = std::function<void(const std::byte* before, const std::byte* after)>;

// Both are scanned once, side by side, in the order of the keys' mix; the numbers of partitions may
// differ. Rows of different sizes are all changed. A second thread reads `before`.
RowsDiff DiffStores(DiskStore* before, DiskStore* after, const DiffOptions& options,
                    const ChangedRow& changed);

struct TableDiff {
  std::string name;
  bool before = false, after = false;  // which of the two have the table
  bool same_layout = false;            // weights can be compared
  RowsDiff rows;
  // Over the changed rows, the norm of the difference of their weights.
  double mean_change = 0, max_change = 0;
};
struct DenseDiff {
  std::string name;
  bool comparable = false;                      // both have it in the same shape
  float before = 0, after = 0, difference = 0;  // norms
};
struct SnapshotDiff {
  std::vector<TableDiff> tables;  // of both, by name
  std::vector<DenseDiff> dense;
};

SnapshotDiff DiffSnapshots(const SnapshotView& before, const SnapshotView& after,
                           const DiffOptions& options);

}  // namespace terrace
