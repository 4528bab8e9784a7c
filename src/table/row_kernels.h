// The CPU's kernels behind row_optimizer.h, one table for each instruction-set level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace terrace {

// Floats of rows: those of row r are at base + positions[r] * stride_bytes.
struct RowFloats {
  std::byte* base = nullptr;
  int64_t stride_bytes = 0;
  const uint32_t* positions = nullptr;  // [rows]
};

// Rows and constants of one call. The kernels see floats only.
struct RowKernelArgs {
  RowFloats weights;  // dim + linear a row
  RowFloats state;
  int dim = 0;
  int linear = 0;
  float* grads = nullptr;  // [rows, dim + linear]
  int64_t rows = 0;
  int64_t prefetch_bytes = 0;  // from a row's weights on; 0: they are in the cache

  float l2 = 0;
  float clip_norm = 0;  // 0: off
  float lr = 0;         // Adam: over 1 - beta1^step; FTRL: 1 / alpha
  float eps = 0;
  float beta1 = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float rescale = 0;  // Adam: 1 / sqrt(1 - beta2^step)
  float ftrl_l1 = 0;
  float ftrl_l2 = 0;
  float ftrl_beta = 0;
};

struct RowOptimizerKernels {
  void (*sgd)(const RowKernelArgs&);
  void (*adagrad)(const RowKernelArgs&);
  void (*row_adagrad)(const RowKernelArgs&);
  void (*adam)(const RowKernelArgs&);
  void (*ftrl)(const RowKernelArgs&);
};
TERRACE_DECLARE_ISA_TABLE(RowOptimizerKernels, kRowOptimizerKernels)

}  // namespace terrace
