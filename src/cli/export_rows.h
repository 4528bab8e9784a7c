// Writes the rows of a snapshot's table as numbers for other programs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/snapshot_view.h"

namespace terrace {

struct ExportOptions {
  std::string table;
  std::string to;      // ends with .tsv or .npy
  bool state = false;  // the optimizer's numbers and the statistics too
  std::function<void(int64_t rows)> progress;
};

struct ExportReport {
  int64_t rows = 0;
  std::vector<std::string> files;
};

// In the order of the store, which is that of the keys' mix: no order for people. Each file appears
// whole; of several, the keys' last. Throws Error(kUsage) for another ending.
ExportReport ExportRows(const SnapshotView& view, const ExportOptions& options);

}  // namespace terrace
