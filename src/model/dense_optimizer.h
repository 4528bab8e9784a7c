// Optimizers of the dense parameters: flat arrays, updated in ranges so that threads can share
// them.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "device/device.h"

namespace terrace {

enum class DenseOptimizerKind { kSgd, kAdaGrad, kAdam };

// [optimizer] of the config: the dense part.
struct DenseOptimizerConfig {
  DenseOptimizerKind kind = DenseOptimizerKind::kAdam;
  double lr = 0.001;
  double l2 = 0;
  double clip_norm = 0;  // of the whole dense gradient; 0: off
  double eps = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.999;

  void Visit(ConfigVisitor& v);
};

// Floats of optimizer state for each parameter: 0, 1 or 2.
int DenseStatePerParam(DenseOptimizerKind kind);

struct DenseUpdateArgs {
  float* params = nullptr;  // [size]
  float* grads = nullptr;   // [size]
  float* state = nullptr;   // [state_per_param][size]
  int64_t size = 0;
  int64_t begin = 0;  // this call's range of parameters
  int64_t end = 0;
  double lr = 0;           // the config's rate times the schedule's factor
  double grad_factor = 1;  // from clipping
  int64_t step = 0;        // from 1
};
void UpdateDense(Stream& stream, const DenseOptimizerConfig& config, const DenseUpdateArgs& args);

// Sum of squares of x[0..n) in double, in a fixed order.
double SumOfSquares(Stream& stream, const float* x, int64_t n);

}  // namespace terrace
