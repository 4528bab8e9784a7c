// RocksDB, as tuned for disk_bench, in the place of our disk tier.
#pragma once

#include <memory>
#include <string>

#include "tier/disk_store.h"

namespace terrace {

// An empty store in `dir`; options.memory_bytes is for its caches and write buffers together. It
// has what a run needs: Get by one thread while another one calls Put, Scan, Settle and stats;
// all else is Error(kUsage).
std::unique_ptr<DiskStore> OpenRocksDbTier(const std::string& dir, const DiskOptions& options);

}  // namespace terrace
