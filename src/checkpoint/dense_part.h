// The file "dense" of a snapshot: the dense parameters and their optimizer's numbers.
//
// float32, little-endian: the parameters of all blocks in the order of SnapshotInfo::dense, then
// what the optimizer keeps, any whole number of floats.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/snapshot.h"

namespace terrace {

inline constexpr const char* kDenseFile = "dense";

struct DensePart {
  std::vector<float> params;
  std::vector<float> state;
};

void AddDense(SnapshotWriter* writer, std::span<const float> params, std::span<const float> state);
// Throws Error(kCorruption) if the file has fewer numbers than its blocks, or is damaged.
DensePart ReadDense(const Snapshot& snapshot);

int64_t NumbersOf(const SnapshotDense& block);

}  // namespace terrace
