// Operations on the loss and on flat arrays of parameters. See dense_ops_kernels.h for how they are
// run.
#pragma once

#include <math.h>

#include <cstdint>

#include "device/kernel_macros.h"
#include "device/vector_math.h"

namespace terrace {

// Log loss of a logit z with label y: softplus(z) - y * z, without overflow for any z.
struct LogLossRows {
  int64_t rows = 0;
  const float* logits = nullptr;   // [rows]
  const float* labels = nullptr;   // [rows]
  const float* weights = nullptr;  // [rows], or null: 1
  float grad_scale = 1;
  float* probabilities = nullptr;  // [rows]
  float* logit_grad = nullptr;     // [rows], or null

  TERRACE_HD void Probability(int64_t row) const { probabilities[row] = Sigmoid(logits[row]); }
  // After Probability.
  TERRACE_HD void Gradient(int64_t row) const {
    const float error = probabilities[row] - labels[row];
    logit_grad[row] = (weights == nullptr ? error : error * weights[row]) * grad_scale;
  }
  TERRACE_HD double Loss(int64_t row) const {
    const double z = logits[row];
    const double tail = log1p(static_cast<double>(ExpOfNonPositive(-__builtin_fabsf(logits[row]))));
    const double loss = (z > 0 ? z : 0.0) - z * labels[row] + tail;
    return weights == nullptr ? loss : loss * weights[row];
  }
};

// What the optimizers share: parameter i and the gradient they see, g = grad * factor + l2 * param.
struct ParamUpdate {
  float* params = nullptr;
  const float* grads = nullptr;
  int64_t begin = 0;  // of the range to update
  int64_t end = 0;
  float grad_factor = 1;
  float l2 = 0;
  float lr = 0;

  TERRACE_HD float Grad(int64_t i) const { return grads[i] * grad_factor + params[i] * l2; }
};

struct SgdUpdate {
  ParamUpdate common;

  TERRACE_HD void operator()(int64_t i) const { common.params[i] -= common.lr * common.Grad(i); }
};

// Duchi et al. 2011, per element.
struct AdaGradUpdate {
  ParamUpdate common;
  float* squares = nullptr;
  float eps = 0;

  TERRACE_HD void operator()(int64_t i) const {
    const float g = common.Grad(i);
    squares[i] += g * g;
    common.params[i] -= common.lr * g / (__builtin_sqrtf(squares[i]) + eps);
  }
};

// Kingma and Ba 2015. `lr` is the rate over 1 - beta1^step; `rescale` is 1 / sqrt(1 - beta2^step).
struct AdamUpdate {
  ParamUpdate common;
  float* mean = nullptr;
  float* variance = nullptr;
  float beta1 = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float rescale = 0;
  float eps = 0;

  TERRACE_HD void operator()(int64_t i) const {
    const float g = common.Grad(i);
    mean[i] = mean[i] * beta1 + g * one_minus_beta1;
    variance[i] = variance[i] * beta2 + g * g * one_minus_beta2;
    common.params[i] -= common.lr * mean[i] / (__builtin_sqrtf(variance[i]) * rescale + eps);
  }
};

// The sum of x^2 in double, in kLanes lanes.
struct SumSquares {
  const float* x = nullptr;
  int64_t size = 0;
};

}  // namespace terrace
