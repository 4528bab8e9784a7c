// What `terrace inspect` finds out about a snapshot.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/row_norms.h"
#include "cli/snapshot_view.h"

namespace terrace {

struct TableReport {
  SnapshotTable table;
  int64_t file_bytes = 0;
  int partitions = 0;
  // Of every row; not where the rows were not read.
  int64_t rows = 0;
  bool counts = false;  // rows have statistics: the hottest are by show, else by norm
  NormHistogram norms;  // of the weights
  std::vector<HotRow> hottest;
};

struct DenseReport {
  SnapshotDense block;
  float norm = 0;
};

struct SnapshotReport {
  std::string path;
  SnapshotInfo info;
  bool rows_read = false;
  std::vector<TableReport> tables;
  std::vector<DenseReport> dense;
  int64_t dense_state = 0;  // numbers of the dense optimizer
};

struct InspectOptions {
  bool rows = true;    // read every row
  size_t hottest = 5;  // rows of each table
  std::function<void(const std::string& table, int64_t rows)> progress;
};

// Throws what opening and reading throw.
SnapshotReport InspectSnapshot(const SnapshotView& view, const InspectOptions& options);

std::string RenderSnapshot(const SnapshotReport& report);
std::string SnapshotJson(const SnapshotReport& report);

}  // namespace terrace
