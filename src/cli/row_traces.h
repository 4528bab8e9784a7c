// Looks for keys in the raw bytes of a directory's files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"

namespace terrace {

struct Trace {
  size_t key = 0;  // number of the key
  std::string file;
  uint64_t offset = 0;
};

struct TraceReport {
  int64_t files = 0;
  int64_t bytes = 0;
  std::vector<Trace> traces;
};

// A store has no key but by its mix: 8 bytes. Every byte of every file in `dir` is read, whatever
// the file is, and each place where the mix of a key stands is a trace. By chance alone one is
// found in 2^64 / (keys * bytes) searches.
TraceReport FindTraces(Env& env, const std::string& dir, std::span<const uint64_t> keys,
                       const std::function<void(int64_t bytes)>& progress);

}  // namespace terrace
