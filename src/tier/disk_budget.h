// How a DiskStore's memory budget is divided.
//
// Buffers are planned once. Fences follow from the rows; what is left goes to filters, at most a
// seventh, or half where many keys that are asked for are absent, and to the index of the logs: the
// more of it, the fewer bytes merges write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/page_io.h"
#include "tier/disk_page.h"
#include "tier/disk_store.h"

namespace terrace {

struct DiskBudget {
  size_t memory_bytes = 0;
  size_t index_bytes = 0;  // what the index may use, if it is not what is left
  size_t buffer_rows = 0;  // of each partition
  BatchReaderOptions reader;
  int readers = 1;        // gets at the same time
  size_t batch_keys = 0;  // keys looked up at once
  size_t merge_bytes = 0;
  size_t io_bytes = 0;  // of one read or write of a merge, or write of a buffer
  size_t buffers = 0;   // bytes of all these

  // Throws Error(kUsage) with what is needed if the budget does not hold the smallest buffers.
  DiskBudget(const DiskOptions& options, const PageLayout& layout);

  // What is left to the index beside fences and filters of these sizes.
  int64_t IndexLimit(int64_t fence_bytes, int64_t filter_bytes, int partitions) const;
  // Bits of filter a row: 0 where it would be too coarse to help. `absent`: the share of the keys
  // asked for that are.
  double FilterBits(int64_t rows, double absent = 0) const;
  // Throws Error(kUsage) if the index cannot hold the keys of 1 % of the rows.
  void CheckRows(const std::string& dir, int64_t rows, int64_t fence_bytes, int64_t filter_bytes,
                 const PageLayout& layout) const;
  // Throws Error(kUsage): an index of `bytes` is above `limit` and cannot be made smaller.
  [[noreturn]] void FailIndex(const std::string& dir, int64_t bytes, int64_t limit) const;
};

}  // namespace terrace
