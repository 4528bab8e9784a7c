// Functions of one float, made of sums, products and comparisons only: a loop over them vectorises,
// and they give the same bits on every instruction set. NaN in, NaN out.
#pragma once

#include <cstdint>

#include "device/kernel_macros.h"

namespace terrace {

enum class Activation { kRelu, kTanh, kSigmoid, kNone };

// e^x for x <= 0, within 2 units in the last place; e^-87 (about 1e-38) for anything below -87.
TERRACE_HD float ExpOfNonPositive(float x) {
  x = x < -87.0f ? -87.0f : x;
  // x = n * ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer and leaves it in the
  // low bits. ln 2 in two parts: n times the first one is exact.
  constexpr float kRound = 12582912.0f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  // Taylor to r^7: the rest is below 6e-9.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  const uint32_t exponent =
      __builtin_bit_cast(uint32_t, shifted) - __builtin_bit_cast(uint32_t, kRound) + 127u;
  return p * __builtin_bit_cast(float, exponent << 23);
}

TERRACE_HD float Sigmoid(float x) {
  const float e = ExpOfNonPositive(-__builtin_fabsf(x));
  const float upper = 1.0f / (1.0f + e);
  const float lower = e * upper;
  return x < 0 ? lower : upper;
}

TERRACE_HD float Tanh(float x) {
  const float a = __builtin_fabsf(x);
  // Near zero 1 - e would cancel: there a fraction of the continued fraction of tanh.
  const float s = x * x;
  const float near = a * (945.0f + s * (105.0f + s)) / (945.0f + s * (420.0f + s * 15.0f));
  const float e = ExpOfNonPositive(-2.0f * a);
  const float far = (1.0f - e) / (1.0f + e);
  const float positive = a < 0.625f ? near : far;
  return x < 0 ? -positive : positive;
}

template <Activation kActivation>
TERRACE_HD float Activate(float x) {
  if constexpr (kActivation == Activation::kRelu) return x < 0 ? 0.0f : x;
  if constexpr (kActivation == Activation::kTanh) return Tanh(x);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid(x);
  return x;
}

// The gradient before the activation, from the one after it and the activation's output y.
template <Activation kActivation>
TERRACE_HD float ActivationGrad(float y, float grad) {
  if constexpr (kActivation == Activation::kRelu) return y > 0 ? grad : 0.0f;
  if constexpr (kActivation == Activation::kTanh) return grad * (1.0f - y * y);
  if constexpr (kActivation == Activation::kSigmoid) return grad * (y * (1.0f - y));
  return grad;
}

}  // namespace terrace
