#include "device/kernel_macros.h"
#include "device/lanes.h"
#include "table/row_kernels.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

// Rows ahead that are prefetched.
constexpr int64_t kAhead = 12;
constexpr int64_t kLine = 64;

TERRACE_HD float SumOfSquares(const float* x, int n) {
  Lanes sum = {};
  Lanes part;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    LoadLanes(x + i, kLanes, part);
    sum += part * part;
  }
  if (i < n) {
    LoadLanes(x + i, n - i, part);
    sum += part * part;
  }
  return SumOfLanes(sum);
}

// A row's weights and state, and its gradient. kN is the number of weights, or 0: `weights`.
template <int kN>
struct Row {
  float* __restrict w;
  float* __restrict state;
  float* __restrict grad;
  int weights;

  TERRACE_HD int n() const { return kN != 0 ? kN : weights; }
};

struct Sgd {
  template <typename Row>
  TERRACE_HD static void Update(const RowKernelArgs& a, const Row& row) {
    const int n = row.n();
    TERRACE_INDEPENDENT
    for (int i = 0; i < n; ++i) row.w[i] -= a.lr * row.grad[i];
  }
};

// Duchi et al. 2011.
struct AdaGrad {
  template <typename Row>
  TERRACE_HD static void Update(const RowKernelArgs& a, const Row& row) {
    const int n = row.n();
    TERRACE_INDEPENDENT
    for (int i = 0; i < n; ++i) {
      const float g = row.grad[i];
      const float squares = row.state[i] + g * g;
      row.state[i] = squares;
      row.w[i] -= a.lr * g / (__builtin_sqrtf(squares) + a.eps);
    }
  }
};

// One sum of mean squares for the vector, one for the linear weight.
struct RowAdaGrad {
  template <typename Row>
  TERRACE_HD static void Update(const RowKernelArgs& a, const Row& row) {
    const int dim = row.n() - a.linear;
    float* state = row.state;
    if (dim > 0) {
      *state += SumOfSquares(row.grad, dim) / static_cast<float>(dim);
      const float rate = a.lr / (__builtin_sqrtf(*state) + a.eps);
      TERRACE_INDEPENDENT
      for (int i = 0; i < dim; ++i) row.w[i] -= rate * row.grad[i];
      ++state;
    }
    if (a.linear != 0) {
      const float g = row.grad[dim];
      *state += g * g;
      row.w[dim] -= a.lr / (__builtin_sqrtf(*state) + a.eps) * g;
    }
  }
};

// Kingma and Ba 2015, on the touched rows only.
struct Adam {
  template <typename Row>
  TERRACE_HD static void Update(const RowKernelArgs& a, const Row& row) {
    const int n = row.n();
    float* const mean = row.state;
    float* const variance = row.state + n;
    TERRACE_INDEPENDENT
    for (int i = 0; i < n; ++i) {
      const float g = row.grad[i];
      const float m = mean[i] * a.beta1 + g * a.one_minus_beta1;
      const float v = variance[i] * a.beta2 + g * g * a.one_minus_beta2;
      mean[i] = m;
      variance[i] = v;
      row.w[i] -= a.lr * m / (__builtin_sqrtf(v) * a.rescale + a.eps);
    }
  }
};

// McMahan et al. 2013, algorithm 1, with 1 / alpha in `lr`.
struct Ftrl {
  template <typename Row>
  TERRACE_HD static void Update(const RowKernelArgs& a, const Row& row) {
    const int weights = row.n();
    float* const z = row.state;
    float* const squares = row.state + weights;
    TERRACE_INDEPENDENT
    for (int i = 0; i < weights; ++i) {
      const float g = row.grad[i];
      const float n = squares[i] + g * g;
      const float root = __builtin_sqrtf(n);
      const float sigma = (root - __builtin_sqrtf(squares[i])) * a.lr;
      const float sum = z[i] + (g - sigma * row.w[i]);
      const float beyond = __builtin_fabsf(sum) - a.ftrl_l1;
      const float size = beyond / ((a.ftrl_beta + root) * a.lr + a.ftrl_l2);
      squares[i] = n;
      z[i] = sum;
      row.w[i] = beyond > 0 ? __builtin_copysignf(size, -sum) : 0.0f;
    }
  }
};

// Adds l2 * w to the gradient, then scales it down to clip_norm.
template <int kN>
TERRACE_HD void Regularise(const RowKernelArgs& a, const Row<kN>& row) {
  const int n = row.n();
  if (a.l2 != 0) {
    TERRACE_INDEPENDENT
    for (int i = 0; i < n; ++i) row.grad[i] += a.l2 * row.w[i];
  }
  if (a.clip_norm == 0) return;
  const float norm = __builtin_sqrtf(SumOfSquares(row.grad, n));
  if (norm <= a.clip_norm) return;
  const float factor = a.clip_norm / norm;
  TERRACE_INDEPENDENT
  for (int i = 0; i < n; ++i) row.grad[i] *= factor;
}

template <typename Optimizer, int kN>
void UpdateAll(const RowKernelArgs& args) {
  const RowKernelArgs a = args;
  const int n = kN != 0 ? kN : a.dim + a.linear;
  const int64_t bytes = (n + a.state) * static_cast<int64_t>(sizeof(float));
  const auto row_at = [&](int64_t r) {
    return reinterpret_cast<char*>(a.base) + a.positions[r] * a.stride_bytes;
  };
  const auto prefetch = [&](int64_t r) {
    char* const row = row_at(r);
    for (int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(row + b, 1);
    __builtin_prefetch(row + bytes - 1, 1);
  };
  for (int64_t r = 0; r < kAhead && r < a.rows; ++r) prefetch(r);
  for (int64_t r = 0; r < a.rows; ++r) {
    if (r + kAhead < a.rows) prefetch(r + kAhead);
    float* const w = reinterpret_cast<float*>(row_at(r));
    const Row<kN> row{w, w + n, a.grads + r * n, n};
    Regularise(a, row);
    Optimizer::Update(a, row);
  }
}

// Straight-line code for the usual vectors, with and without a linear weight.
template <typename Optimizer>
void Update(const RowKernelArgs& args) {
  switch (args.dim + args.linear) {
    case 8:
      return UpdateAll<Optimizer, 8>(args);
    case 9:
      return UpdateAll<Optimizer, 9>(args);
    case 16:
      return UpdateAll<Optimizer, 16>(args);
    case 17:
      return UpdateAll<Optimizer, 17>(args);
    case 32:
      return UpdateAll<Optimizer, 32>(args);
    case 33:
      return UpdateAll<Optimizer, 33>(args);
    default:
      return UpdateAll<Optimizer, 0>(args);
  }
}

}  // namespace

const RowOptimizerKernels kRowOptimizerKernels = {
    .sgd = Update<Sgd>,
    .adagrad = Update<AdaGrad>,
    .row_adagrad = Update<RowAdaGrad>,
    .adam = Update<Adam>,
    .ftrl = Update<Ftrl>,
};

}  // namespace TERRACE_ISA
}  // namespace terrace
