// The CPU's kernels behind embedding_ops.h, one table for each instruction-set level.
#pragma once

#include "base/cpu.h"
#include "device/embedding_ops.h"

namespace terrace {

inline constexpr int kMaxEmbeddingDim = 512;
inline constexpr int64_t kMaxGradSlices = 1024;

struct EmbeddingKernels {
  void (*gather_pool)(const GatherArgs&);
  void (*sum_row_gradients)(const RowGradArgs&);
};
TERRACE_DECLARE_ISA_TABLE(EmbeddingKernels, kEmbeddingKernels)

}  // namespace terrace
