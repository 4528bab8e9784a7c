// The table of row-update kernels, one for each instruction-set level. See table/row_optimizer.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace terrace {

// Everything a kernel needs, in the types it computes with.
struct RowKernelArgs {
  std::byte* base;
  int64_t stride_bytes;
  const uint32_t* positions;  // [rows]
  float* grads;               // [rows, weights]
  int64_t rows;
  int weights;
  int linear;  // 0 or 1: the last weight is the linear one
  float lr;    // adam: lr / (1 - beta1^step)
  float l2;
  float clip_norm;  // 0: off
  float eps;
  float beta1;
  float beta2;
  float adam_scale;  // 1 / sqrt(1 - beta2^step)
  float ftrl_l1;
  float ftrl_l2;
  float ftrl_beta;
};

struct RowKernels {
  // By RowOptimizer.
  void (*update[5])(const RowKernelArgs& args);
};
TERRACE_DECLARE_ISA_TABLE(RowKernels, kRowKernels)

}  // namespace terrace
