// Log loss on logits.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace terrace {

struct LossArgs {
  int64_t rows = 0;
  const float* logits = nullptr;   // [rows]
  const float* labels = nullptr;   // [rows], in [0, 1]
  const float* weights = nullptr;  // [rows] or null: 1
  float grad_scale = 1;            // 1 / examples of the batch
  float* probabilities = nullptr;  // [rows], out
  float* logit_grad = nullptr;     // [rows], out; null: forward only
};
// Returns the weighted sum of the log losses, in example order, in double.
double LogLoss(Stream& stream, const LossArgs& args);

}  // namespace terrace
