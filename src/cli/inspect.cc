#include "cli/inspect.h"

#include <algorithm>

#include "base/error.h"
#include "tier/disk_budget.h"
#include "tier/disk_manifest.h"

namespace terrace {
namespace {

// More than any store needs: a budget is a limit, what is used follows from the store.
constexpr size_t kNoLimit = size_t{1} << 50;

bool Opens(const DiskOptions& options, const PageLayout& layout, const DiskStats& stats) {
  try {
    const DiskBudget budget(options, layout);
    const bool filters = budget.FilterBits(stats.total.base_rows) > 0;
    return budget.IndexLimit(stats.fence_bytes, filters ? stats.filter_bytes : 0,
                             layout.partitions()) >= stats.index_bytes;
  } catch (const Error&) {  // not even the buffers fit
    return false;
  }
}

int64_t MemoryToOpen(const PageLayout& layout, const DiskStats& stats) {
  DiskOptions options;
  options.memory_bytes = 1 << 20;
  while (!Opens(options, layout, stats)) options.memory_bytes += options.memory_bytes / 64;
  return static_cast<int64_t>(options.memory_bytes);
}

}  // namespace

StoreReport InspectStore(Env& env, const std::string& name, const std::string& path) {
  DiskOptions options;
  options.env = &env;
  options.memory_bytes = kNoLimit;
  StoreReport report;
  report.name = name;
  report.path = path;
  report.stats = DiskStore::OpenReadOnly(path, options)->stats();

  const DiskStats& stats = report.stats;
  for (const PartitionStats& partition : stats.partitions) {
    report.rows_min += partition.rows_min();
    report.rows_max += partition.rows_max();
  }
  const int64_t entry_bytes = static_cast<int64_t>(sizeof(uint64_t) + stats.row_bytes);
  report.log_bytes = stats.total.log_pages * static_cast<int64_t>(stats.page_bytes);
  report.base_bytes = stats.total.file_bytes - report.log_bytes;
  report.garbage_bytes =
      (stats.total.base_rows + stats.total.log_rows - report.rows_min) * entry_bytes;
  if (report.rows_min > 0)
    report.space_amplification = static_cast<double>(stats.total.file_bytes) /
                                 static_cast<double>(report.rows_min * entry_bytes);
  const PageLayout layout(stats.row_bytes, stats.page_bytes,
                          static_cast<int>(stats.partitions.size()));
  report.memory_to_open = MemoryToOpen(layout, stats);
  return report;
}

}  // namespace terrace
