// Kernels of hash.h; hash_simd.cc has them for each instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace terrace {

struct HashKernels {
  uint64_t (*xxh3_64)(const void* data, size_t size, uint64_t seed);
};

TERRACE_DECLARE_ISA_TABLE(HashKernels, kHashKernels)

}  // namespace terrace
