#include "bench/tiers_lru.h"

#include "base/hash.h"
#include "base/memory.h"
#include "tier/key_dedup.h"

namespace terrace {

LruHits SimulateLru(const TrafficOptions& options, int64_t batch, int64_t warmup, int64_t batches,
                    uint64_t rows) {
  const BatchShape shape;  // of no interest to keys
  Traffic traffic(options, shape);
  const uint64_t draws = options.draws(batch);
  const auto all_batches = static_cast<uint64_t>(warmup + batches);
  ExactLru lru(options.rows + options.fresh_keys(draws) * all_batches, rows);
  KeyDedup dedup;
  std::vector<uint64_t> keys;
  Array<uint64_t> distinct;
  Array<uint32_t> numbers;
  LruHits sum;
  for (int64_t b = 0; b < warmup + batches; ++b) {
    traffic.NextKeys(draws, &keys);
    dedup.Run(keys, &distinct, &numbers);
    int64_t hits = 0;
    for (uint64_t key : distinct) hits += lru.Use(Unmix64(key) - 1);
    if (b < warmup) continue;
    sum.lookups += static_cast<int64_t>(distinct.size());
    sum.hits += hits;
  }
  return sum;
}

}  // namespace terrace
