// Eviction policies on a trace: the keys of batch after batch go through a memory tier of so many
// rows, of which only the bookkeeping is simulated.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "data/batch.h"
#include "tier/eviction_policy.h"

namespace terrace {

struct TraceBatch {
  Array<uint32_t> keys;  // distinct; numbered 0, 1, 2 ... over the whole trace
  int64_t examples = 0;
};

struct PolicyTrace {
  std::vector<TraceBatch> batches;
  int64_t keys = 0;  // distinct ones

  int64_t examples() const;
  int64_t lookups() const;        // keys of all batches
  int64_t largest_batch() const;  // its keys
};

// Records the keys of the first table. Throws Error(kUsage) if there are too few or too many of
// them, Error(kInterrupted) once `stop` is set.
PolicyTrace RecordTrace(BatchSource& source, int64_t batch_size, const std::atomic<bool>& stop);

struct TierShape {
  int64_t rows = 0;
  int64_t window = 4;  // next-use: batches that are known ahead
};

// Counts of the second half of the trace: the first one warms up.
struct PolicyScore {
  PolicyKind kind = PolicyKind::kLru;
  int64_t examples = 0;
  int64_t hits = 0;    // the row was in memory
  int64_t misses = 0;  // it had left: a read from disk
  int64_t fresh = 0;   // the key was never seen before: no policy can help
  double row_bytes = 0;
  double use_ns = 0;     // mean time of a use
  double victim_ns = 0;  // of choosing a row that leaves

  double hit_rate() const;  // of the rows that exist
  double misses_per_example() const;
};

// Throws Error(kUsage) if the largest batch does not fit in the tier.
PolicyScore ScorePolicy(const PolicyTrace& trace, PolicyKind kind, const TierShape& tier);

}  // namespace terrace
