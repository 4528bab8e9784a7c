// What snapshots take on disk. They share files with each other by hard links.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/env.h"

namespace terrace {

struct SnapshotSizes {
  int64_t files = 0;
  int64_t own_bytes = 0;     // of files with no other name: what removing it frees
  int64_t shared_bytes = 0;  // of files that others, or the run that goes on, have too
};

// Files seen so far, by device and inode.
using SeenFiles = std::set<std::pair<uint64_t, uint64_t>>;

// All files below `path`. `new_bytes` counts those that are not in `seen` yet and adds them, so
// that over several snapshots each file counts once.
SnapshotSizes MeasureSnapshot(Env& env, const std::string& path, SeenFiles* seen,
                              int64_t* new_bytes);

}  // namespace terrace
