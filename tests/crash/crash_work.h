// The work of the crash tests: what a store holds is a function of a seed and the number of
// commits.
//
// Step n ends with commit n, so that a store tells by its commits where to go on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {

// Options of the store that a seed stands for: small, so that merges and new files are frequent.
inline DiskOptions CrashOptions(uint64_t seed) {
  DiskOptions options;
  options.row_bytes = 16 + 28 * (seed % 3);
  options.page_bytes = seed % 2 == 0 ? 512 : 0;
  options.partitions = 1 << (seed % 4);
  options.memory_bytes = 8 << 20;
  options.index_bytes = 500 * static_cast<size_t>(options.partitions) + 3000;
  options.background = seed % 5 != 0;
  options.io = seed % 7 == 0 ? IoEngine::kThreads : IoEngine::kAuto;
  return options;
}

inline bool IsSnapshotStep(uint64_t seed, uint64_t step) {
  return RandomBits(seed, step, 1) % 6 == 0;
}
inline std::string SnapshotDir(const std::string& dir, uint64_t step) {
  return dir + "_copy" + std::to_string(step);
}

// Does a step in the store, or only to what is known of it if that is null.
inline void CrashStep(uint64_t seed, uint64_t step, DiskStore* store, const std::string& dir,
                      Contents* contents) {
  constexpr uint64_t kKeys = 700;
  RandomStream random(seed, step);
  const uint64_t calls = 1 + random.Next() % 5;
  for (uint64_t call = 0; call < calls; ++call) {
    std::vector<uint64_t> keys(random.Next() % 100);
    for (uint64_t& key : keys) key = BelowN(random.Next(), kKeys);
    const uint64_t version = step * 1000 + call * 100;
    switch (random.Next() % 8) {
      case 0:
      case 1:
        if (store != nullptr) store->Delete(keys);
        for (uint64_t key : keys) contents->erase(MixOfKey(key));
        break;
      case 2:
        if (store != nullptr && call == 0) store->Merge();
        break;
      case 3:
        if (store != nullptr) store->Settle();
        break;
      default:
        if (store != nullptr) PutVersion(*store, keys, version);
        NoteVersion(keys, version, contents);
    }
  }
  if (store == nullptr) return;
  if (IsSnapshotStep(seed, step))
    store->Snapshot(SnapshotDir(dir, step));
  else
    store->Commit();
}

}  // namespace terrace
