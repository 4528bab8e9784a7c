// Product of row-major float matrices.
#pragma once

#include "device/device.h"

namespace terrace {

// c = alpha * op(a) * op(b) + beta * c, where op transposes or not. With beta == 0 the old contents
// of c do not matter, NaN included.
struct GemmArgs {
  ConstMatrix a;
  ConstMatrix b;
  Matrix c;
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;
};
void Gemm(Stream& stream, const GemmArgs& args);

// The CPU's: one call of the BLAS library on the calling thread.
void CpuGemm(const GemmArgs& args);

}  // namespace terrace
