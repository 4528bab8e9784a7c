#if defined(__AVX__)
#include <immintrin.h>
#endif

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

TERRACE_HD void SquareRoot(const float& x, float& root) { root = __builtin_sqrtf(x); }
TERRACE_HD void SquareRoot(const Lanes& x, Lanes& root) {
#if defined(__AVX__)
  root = _mm256_sqrt_ps(x);
#else
  for (int l = 0; l < kLanes; ++l) root[l] = __builtin_sqrtf(x[l]);
#endif
}

// The optimizers that treat each weight by itself: Step changes a weight and its kStates numbers of
// state by the gradient g. T is float or Lanes.
struct Sgd {
  static constexpr int kStates = 0;
  template <typename T>
  TERRACE_HD static void Step(const RowKernelArgs& a, const T& g, T& w, T (&)[1]) {
    w -= a.lr * g;
  }
};

// Duchi et al. 2011.
struct AdaGrad {
  static constexpr int kStates = 1;
  template <typename T>
  TERRACE_HD static void Step(const RowKernelArgs& a, const T& g, T& w, T (&squares)[1]) {
    squares[0] += g * g;
    T root;
    SquareRoot(squares[0], root);
    w -= a.lr * g / (root + a.eps);
  }
};

// Kingma and Ba 2015, on the touched rows only.
struct Adam {
  static constexpr int kStates = 2;
  template <typename T>
  TERRACE_HD static void Step(const RowKernelArgs& a, const T& g, T& w, T (&state)[2]) {
    T& mean = state[0];
    T& variance = state[1];
    mean = mean * a.beta1 + g * a.one_minus_beta1;
    variance = variance * a.beta2 + g * g * a.one_minus_beta2;
    T root;
    SquareRoot(variance, root);
    w -= a.lr * mean / (root * a.rescale + a.eps);
  }
};

// McMahan et al. 2013, algorithm 1, with 1 / alpha in `lr`.
struct Ftrl {
  static constexpr int kStates = 2;
  template <typename T>
  TERRACE_HD static void Step(const RowKernelArgs& a, const T& g, T& w, T (&state)[2]) {
    T& z = state[0];
    T& squares = state[1];
    T old_root, root;
    SquareRoot(squares, old_root);
    squares += g * g;
    SquareRoot(squares, root);
    z += g - (root - old_root) * a.lr * w;
    const T beyond = (z < 0 ? -z : z) - a.ftrl_l1;
    const T size = beyond / ((a.ftrl_beta + root) * a.lr + a.ftrl_l2);
    w = beyond > 0 ? (z < 0 ? size : -size) : T{};
  }
};

template <typename Optimizer>
struct ByWeight {
  static constexpr int kArrays = Optimizer::kStates > 0 ? Optimizer::kStates : 1;

  TERRACE_HD static void Update(const RowKernelArgs& a, int n, const float* grad, float* w,
                                float* s) {
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      Lanes g, weight, state[kArrays];
      LoadLanes(grad + i, kLanes, g);
      LoadLanes(w + i, kLanes, weight);
      for (int k = 0; k < Optimizer::kStates; ++k) LoadLanes(s + k * n + i, kLanes, state[k]);
      Optimizer::Step(a, g, weight, state);
      StoreLanes(weight, kLanes, false, w + i);
      for (int k = 0; k < Optimizer::kStates; ++k)
        StoreLanes(state[k], kLanes, false, s + k * n + i);
    }
    for (; i < n; ++i) {
      float state[kArrays];
      for (int k = 0; k < Optimizer::kStates; ++k) state[k] = s[k * n + i];
      Optimizer::Step(a, grad[i], w[i], state);
      for (int k = 0; k < Optimizer::kStates; ++k) s[k * n + i] = state[k];
    }
  }
};

// AdaGrad with one sum of mean squares for the vector, and one for the linear weight.
struct ByRow {
  TERRACE_HD static void Update(const RowKernelArgs& a, int n, const float* grad, float* w,
                                float* state) {
    const int dim = n - a.linear;
    if (dim > 0) {
      *state += SumOfSquares(grad, dim) / static_cast<float>(dim);
      const float rate = a.lr / (__builtin_sqrtf(*state) + a.eps);
      TERRACE_INDEPENDENT
      for (int i = 0; i < dim; ++i) w[i] -= rate * grad[i];
      ++state;
    }
    if (a.linear != 0) {
      const float g = grad[dim];
      *state += g * g;
      w[dim] -= a.lr / (__builtin_sqrtf(*state) + a.eps) * g;
    }
  }
};

// Adds l2 * w to the gradient, then scales it down to clip_norm.
TERRACE_HD void Regularise(const RowKernelArgs& a, int n, const float* w, float* grad) {
  if (a.l2 != 0) {
    TERRACE_INDEPENDENT
    for (int i = 0; i < n; ++i) grad[i] += a.l2 * w[i];
  }
  if (a.clip_norm == 0) return;
  const float norm = __builtin_sqrtf(SumOfSquares(grad, n));
  if (norm <= a.clip_norm) return;
  const float factor = a.clip_norm / norm;
  TERRACE_INDEPENDENT
  for (int i = 0; i < n; ++i) grad[i] *= factor;
}

TERRACE_HD void PrefetchRow(const char* row, int64_t bytes) {
  for (int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(row + b, 1);
  __builtin_prefetch(row + bytes - 1, 1);
}

// kN is the number of weights, or 0: known at run time only.
template <typename Optimizer, int kN>
void UpdateAll(const RowKernelArgs& args) {
  const RowKernelArgs a = args;
  const int n = kN != 0 ? kN : a.dim + a.linear;
  const auto row_at = [](const RowFloats& floats, int64_t r) {
    return reinterpret_cast<char*>(floats.base) + floats.positions[r] * floats.stride_bytes;
  };
  const int64_t ahead = a.prefetch_bytes > 0 ? a.rows : 0;  // rows to prefetch
  for (int64_t r = 0; r < kAhead && r < ahead; ++r)
    PrefetchRow(row_at(a.weights, r), a.prefetch_bytes);
  for (int64_t r = 0; r < a.rows; ++r) {
    if (r + kAhead < ahead) PrefetchRow(row_at(a.weights, r + kAhead), a.prefetch_bytes);
    auto* const w = reinterpret_cast<float*>(row_at(a.weights, r));
    auto* const state = reinterpret_cast<float*>(row_at(a.state, r));
    float* const grad = a.grads + r * n;
    Regularise(a, n, w, grad);
    Optimizer::Update(a, n, grad, w, state);
  }
}

// Straight-line code for the usual vectors, with and without a linear weight.
template <typename Optimizer>
void Update(const RowKernelArgs& args) {
  switch (args.dim + args.linear) {
    case 1:
      return UpdateAll<Optimizer, 1>(args);
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
    .sgd = Update<ByWeight<Sgd>>,
    .adagrad = Update<ByWeight<AdaGrad>>,
    .row_adagrad = Update<ByRow>,
    .adam = Update<ByWeight<Adam>>,
    .ftrl = Update<ByWeight<Ftrl>>,
};

}  // namespace TERRACE_ISA
}  // namespace terrace
