// The loops of the row optimizers. A row's result depends on that row's data only: never on its
// place in the call, nor on the instruction set.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "table/row_kernels.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

constexpr int64_t kPrefetchRows = 12;
constexpr int kLineBytes = 64;
constexpr int kLanes = 8;  // of every sum over a row's weights, at every instruction set

// Sum of squares with kLanes partial sums, joined in a fixed order.
inline float SumOfSquares(const float* g, int n) {
  float lanes[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] += g[i + l] * g[i + l];
  for (int l = 0; i < n; ++i, ++l) lanes[l] += g[i] * g[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Each optimizer: state_floats(weights) after the weights, and Apply to one row. `n` is a constant
// where the kernel is made for a width.
struct Sgd {
  static int StateFloats(const RowKernelArgs&) { return 0; }
  static inline void Apply(const RowKernelArgs& a, int n, float* __restrict w, float*,
                           const float* __restrict g) {
    for (int i = 0; i < n; ++i) w[i] -= a.lr * g[i];
  }
};

struct AdaGrad {
  static int StateFloats(const RowKernelArgs& a) { return a.weights; }
  static inline void Apply(const RowKernelArgs& a, int n, float* __restrict w, float* __restrict s,
                           const float* __restrict g) {
    for (int i = 0; i < n; ++i) {
      const float sum = s[i] + g[i] * g[i];
      s[i] = sum;
      w[i] -= a.lr * g[i] / (std::sqrt(sum) + a.eps);
    }
  }
};

struct RowAdaGrad {
  static int StateFloats(const RowKernelArgs& a) {
    return (a.weights > a.linear ? 1 : 0) + a.linear;
  }
  static inline void Apply(const RowKernelArgs& a, int n, float* __restrict w, float* __restrict s,
                           const float* __restrict g) {
    const int dim = n - a.linear;
    if (dim > 0) {
      s[0] += SumOfSquares(g, dim) / static_cast<float>(dim);
      const float rate = a.lr / (std::sqrt(s[0]) + a.eps);
      for (int i = 0; i < dim; ++i) w[i] -= rate * g[i];
    }
    if (a.linear != 0) {
      float& sum = s[dim > 0 ? 1 : 0];
      sum += g[dim] * g[dim];
      w[dim] -= a.lr / (std::sqrt(sum) + a.eps) * g[dim];
    }
  }
};

struct Adam {
  static int StateFloats(const RowKernelArgs& a) { return 2 * a.weights; }
  static inline void Apply(const RowKernelArgs& a, int n, float* __restrict w, float* __restrict s,
                           const float* __restrict g) {
    float* const mean = s;
    float* const square = s + n;
    for (int i = 0; i < n; ++i) {
      const float m = a.beta1 * mean[i] + (1 - a.beta1) * g[i];
      const float v = a.beta2 * square[i] + (1 - a.beta2) * (g[i] * g[i]);
      mean[i] = m;
      square[i] = v;
      w[i] -= a.lr * m / (std::sqrt(v) * a.adam_scale + a.eps);
    }
  }
};

// McMahan et al.: the weight is a function of the state (z, n), so l1 gives exact zeros.
struct Ftrl {
  static int StateFloats(const RowKernelArgs& a) { return 2 * a.weights; }
  static inline void Apply(const RowKernelArgs& a, int n, float* __restrict w, float* __restrict s,
                           const float* __restrict g) {
    float* const z = s;
    float* const squares = s + n;
    for (int i = 0; i < n; ++i) {
      const float sum = squares[i] + g[i] * g[i];
      const float root = std::sqrt(sum);
      const float sigma = (root - std::sqrt(squares[i])) / a.lr;
      const float zi = z[i] + (g[i] - sigma * w[i]);
      squares[i] = sum;
      z[i] = zi;
      const float shrunk = zi - (zi < 0 ? -a.ftrl_l1 : a.ftrl_l1);
      const float weight = -shrunk / ((a.ftrl_beta + root) / a.lr + a.ftrl_l2);
      w[i] = (zi < 0 ? -zi : zi) <= a.ftrl_l1 ? 0.0f : weight;
    }
  }
};

inline void ClipAndDecay(const RowKernelArgs& a, int n, const float* __restrict w,
                         float* __restrict g) {
  if (a.clip_norm > 0) {
    const float norm = std::sqrt(SumOfSquares(g, n));
    if (norm > a.clip_norm) {
      const float factor = a.clip_norm / norm;
      for (int i = 0; i < n; ++i) g[i] *= factor;
    }
  }
  if (a.l2 > 0)
    for (int i = 0; i < n; ++i) g[i] += a.l2 * w[i];
}

// kWeights: the row's weights, or 0 where they are known at run time only.
template <typename Optimizer, int kWeights>
void UpdateLoop(const RowKernelArgs& a) {
  const int n = kWeights > 0 ? kWeights : a.weights;
  const int64_t row_bytes = 4 * int64_t{n + Optimizer::StateFloats(a)};
  const bool adjust = a.clip_norm > 0 || a.l2 > 0;
  for (int64_t r = 0; r < a.rows; ++r) {
    if (r + kPrefetchRows < a.rows) {
      const std::byte* next = a.base + a.positions[r + kPrefetchRows] * a.stride_bytes;
      for (int64_t b = 0; b < row_bytes; b += kLineBytes) __builtin_prefetch(next + b, 1);
    }
    auto* const w = reinterpret_cast<float*>(a.base + a.positions[r] * a.stride_bytes);
    float* const g = a.grads + r * n;
    if (adjust) ClipAndDecay(a, n, w, g);
    Optimizer::Apply(a, n, w, w + n, g);
  }
}

// The widths of common tables (a power of two, with and without a linear weight) get loops of
// their own.
template <typename Optimizer>
void Update(const RowKernelArgs& a) {
  switch (a.weights) {
    case 1:
      return UpdateLoop<Optimizer, 1>(a);
    case 8:
      return UpdateLoop<Optimizer, 8>(a);
    case 9:
      return UpdateLoop<Optimizer, 9>(a);
    case 16:
      return UpdateLoop<Optimizer, 16>(a);
    case 17:
      return UpdateLoop<Optimizer, 17>(a);
    default:
      return UpdateLoop<Optimizer, 0>(a);
  }
}

}  // namespace

const RowKernels kRowKernels = {
    {Update<Sgd>, Update<AdaGrad>, Update<RowAdaGrad>, Update<Adam>, Update<Ftrl>}};

}  // namespace TERRACE_ISA
}  // namespace terrace
