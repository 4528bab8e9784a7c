// The dense operations that layers are made of: each is a plain struct of its arguments with a call
// operator, run over elements or rows by the launcher of a device (dense_ops.h).
//
// `adds`: the result is added to what the output holds; otherwise it is written.
#pragma once

#include <cstdint>

#include "device/kernel_macros.h"
#include "device/lanes.h"
#include "device/matrix.h"
#include "device/vector_math.h"

namespace terrace {

TERRACE_HD void Put(float* to, float value, bool adds) { *to = adds ? *to + value : value; }

// y = activation(y + bias)
struct BiasActivate {
  Matrix y;
  const float* bias = nullptr;  // [cols], or null: 0
  Activation activation = Activation::kNone;

  template <Activation kActivation>
  TERRACE_HD void At(int64_t row, int64_t col) const {
    float* const out = y.row(row) + col;
    *out = Activate<kActivation>(bias == nullptr ? *out : *out + bias[col]);
  }
};

// grad = grad * activation'; bias_grad = its column sums, in row order.
struct ActivateBackward {
  ConstMatrix y = {};  // the activation's output; unused for kNone
  Matrix grad;
  float* bias_grad = nullptr;  // [cols], or null
  Activation activation = Activation::kNone;

  // Returns what is summed by column.
  template <Activation kActivation>
  TERRACE_HD float At(int64_t row, int64_t col) const {
    float* const out = grad.row(row) + col;
    if constexpr (kActivation != Activation::kNone)
      *out = ActivationGrad<kActivation>(y.row(row)[col], *out);
    return *out;
  }
};

// y[row] = x[row] . w + bias
struct RowDot {
  ConstMatrix x;
  const float* w = nullptr;     // [cols]
  const float* bias = nullptr;  // [1], or null: 0
  float* y = nullptr;           // [rows]
  bool adds = false;

  TERRACE_HD void AddLanes(const float* in, int64_t col, int n, Lanes& sum) const {
    Lanes a, b;
    LoadLanes(in + col, n, a);
    LoadLanes(w + col, n, b);
    sum += a * b;
  }
  TERRACE_HD void operator()(int64_t row) const {
    Lanes sum = {};
    int64_t col = 0;
    for (; col + kLanes <= x.cols; col += kLanes) AddLanes(x.row(row), col, kLanes, sum);
    AddLanes(x.row(row), col, static_cast<int>(x.cols - col), sum);
    const float dot = SumOfLanes(sum);
    Put(y + row, bias == nullptr ? dot : dot + *bias, adds);
  }
};

// w_grad[col] = the sum of y_grad[row] * x[row, col], in row order
struct RowDotWeightGrad {
  ConstMatrix x;
  const float* y_grad = nullptr;  // [rows]
  float* w_grad = nullptr;        // [cols]

  TERRACE_HD float operator()(int64_t row, int64_t col) const {
    return y_grad[row] * x.row(row)[col];
  }
};

// x_grad[row, col] = y_grad[row] * w[col]
struct RowDotInputGrad {
  const float* y_grad = nullptr;  // [rows]
  const float* w = nullptr;       // [cols]
  Matrix x_grad;
  bool adds = false;

  TERRACE_HD void operator()(int64_t row, int64_t col) const {
    Put(x_grad.row(row) + col, y_grad[row] * w[col], adds);
  }
};

// y[row] = bias + part 0 + part 1 + ..., in that order
struct SumParts {
  static constexpr int kMaxParts = 4;
  int64_t rows = 0;
  const float* bias = nullptr;        // [1]
  const float* part[kMaxParts] = {};  // [rows] each
  int parts = 0;
  float* y = nullptr;  // [rows]

  TERRACE_HD void operator()(int64_t row) const {
    float sum = *bias;
    for (int i = 0; i < parts; ++i) sum += part[i][row];
    y[row] = sum;
  }
};

// y = x where a unit is kept, scaled by 1 / keep, else 0. Whether a unit is kept depends on (seed,
// example, unit) only. The backward pass is the same operation on gradients.
struct Dropout {
  ConstMatrix x;
  Matrix y;
  bool adds = false;
  double keep = 1;            // probability, in (0, 1]
  uint64_t seed = 0;          // of the step and the layer
  int64_t first_example = 0;  // number in its batch of row 0

  // A bijection of 32-bit integers with good avalanche: two rounds of multiply and shift.
  TERRACE_HD static uint32_t Mix(uint32_t v) {
    v = (v ^ (v >> 16)) * 0x7feb352du;
    v = (v ^ (v >> 15)) * 0x846ca68bu;
    return v ^ (v >> 16);
  }
  // 64 bits of the example; a unit mixes both halves.
  struct RowKey {
    uint32_t low;
    uint32_t high;
  };
  TERRACE_HD RowKey Key(int64_t row) const {
    const uint64_t example = static_cast<uint64_t>(first_example + row);
    const uint32_t low = Mix(static_cast<uint32_t>(seed) + static_cast<uint32_t>(example));
    const uint32_t high = Mix(static_cast<uint32_t>(seed >> 32) ^ low ^
                              static_cast<uint32_t>(example >> 32) * 0x9e3779b9u);
    return {low, high};
  }
  // A unit is kept if its random number is at most this.
  TERRACE_HD uint32_t Limit() const { return static_cast<uint32_t>(keep * 4294967295.0); }
  TERRACE_HD static bool Kept(RowKey key, uint32_t limit, int64_t col) {
    return Mix(Mix(static_cast<uint32_t>(col) * 0x9e3779b9u ^ key.low) + key.high) <= limit;
  }

  TERRACE_HD void operator()(RowKey key, uint32_t limit, float scale, int64_t row,
                             int64_t col) const {
    const float in = x.row(row)[col];
    Put(y.row(row) + col, Kept(key, limit, col) ? in * scale : 0.0f, adds);
  }
};

// to = from
struct Copy {
  const float* from = nullptr;
  float* to = nullptr;
  int64_t size = 0;

  TERRACE_HD void operator()(int64_t i) const { to[i] = from[i]; }
};

// to += from
struct Accumulate {
  const float* from = nullptr;
  float* to = nullptr;
  int64_t size = 0;

  TERRACE_HD void operator()(int64_t i) const { to[i] += from[i]; }
};

// y = 0
struct Clear {
  Matrix y;

  TERRACE_HD void operator()(int64_t row, int64_t col) const { y.row(row)[col] = 0; }
};

}  // namespace terrace
