// What `terrace inspect` finds out about a store without reading its rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env.h"
#include "tier/disk_store.h"

namespace terrace {

struct StoreReport {
  std::string name, path;
  DiskStats stats;
  int64_t rows_min = 0, rows_max = 0;  // equal where the number is known
  int64_t base_bytes = 0, log_bytes = 0;
  // At most: what is superseded in a base is known when it is merged.
  int64_t garbage_bytes = 0;
  double space_amplification = 0;  // bytes of files / bytes of live rows; 0 without rows
  int64_t memory_to_open = 0;      // the smallest budget that is enough for reading
};

// Opens the store for reading: its manifest, fences, filters and logs are read. Throws what opening
// throws.
StoreReport InspectStore(Env& env, const std::string& name, const std::string& path);

std::string RenderStores(const std::vector<StoreReport>& reports, bool partitions);
std::string StoresJson(const std::vector<StoreReport>& reports, bool partitions);

}  // namespace terrace
