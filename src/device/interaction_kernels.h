// Operations between the vectors of an example: factorization machine, cross layer, pairwise dots.
// See dense_ops_kernels.h for how they are run.
#pragma once

#include <cstdint>

#include "device/dense_ops_kernels.h"

namespace terrace {

// Second-order pooling of a factorization machine (Rendle 2010): the sum of the dots of all pairs
// of an example's slot vectors v, as y = 1/2 * sum over d of ((sum v_d)^2 - sum v_d^2).
struct FmPool {
  ConstMatrix x;  // [rows, slots * dim]
  int slots = 0;
  int dim = 0;
  float* y = nullptr;  // [rows]

  TERRACE_HD void AddDims(const float* v, int n, Lanes& total) const {
    Lanes sum = {}, squares = {}, at;
    for (int s = 0; s < slots; ++s) {
      LoadLanes(v + s * dim, n, at);
      sum += at;
      squares += at * at;
    }
    total += sum * sum - squares;
  }

  TERRACE_HD void operator()(int64_t row) const {
    Lanes total = {};
    int d = 0;
    for (; d + kLanes <= dim; d += kLanes) AddDims(x.row(row) + d, kLanes, total);
    if (d < dim) AddDims(x.row(row) + d, dim - d, total);
    y[row] = 0.5f * SumOfLanes(total);
  }
};

// x_grad of slot s = y_grad * (sum over slots v - v of slot s)
struct FmPoolBackward {
  ConstMatrix x;  // [rows, slots * dim]
  int slots = 0;
  int dim = 0;
  const float* y_grad = nullptr;  // [rows]
  Matrix x_grad;                  // [rows, slots * dim]
  bool adds = false;

  TERRACE_HD void PutDims(const float* v, float* v_grad, int n, float g) const {
    Lanes sum = {}, at;
    for (int s = 0; s < slots; ++s) {
      LoadLanes(v + s * dim, n, at);
      sum += at;
    }
    for (int s = 0; s < slots; ++s) {
      LoadLanes(v + s * dim, n, at);
      const Lanes grad = g * (sum - at);
      StoreLanes(grad, n, adds, v_grad + s * dim);
    }
  }

  TERRACE_HD void operator()(int64_t row) const {
    int d = 0;
    for (; d + kLanes <= dim; d += kLanes)
      PutDims(x.row(row) + d, x_grad.row(row) + d, kLanes, y_grad[row]);
    if (d < dim) PutDims(x.row(row) + d, x_grad.row(row) + d, dim - d, y_grad[row]);
  }
};

// Moves vectors between matrices whose vectors have different dims: the leading numbers that both
// dims have are copied, the rest of a longer one becomes 0.
struct ResizeVectors {
  ConstMatrix x;  // [rows, count * x_dim]
  int x_dim = 0;
  Matrix y;  // [rows, count * y_dim]
  int y_dim = 0;
  int count = 0;
  bool adds = false;

  TERRACE_HD void operator()(int64_t row) const {
    const int both = x_dim < y_dim ? x_dim : y_dim;
    const float* from = x.row(row);
    float* to = y.row(row);
    for (int k = 0; k < count; ++k, from += x_dim, to += y_dim) {
      for (int d = 0; d < both; ++d) Put(to + d, from[d], adds);
      for (int d = both; d < y_dim; ++d) Put(to + d, 0.0f, adds);
    }
  }
};

// The element-wise half of a DCN-v2 cross layer (Wang et al. 2021): u += bias; y = x0 * u + xl.
struct CrossForward {
  ConstMatrix x0;
  ConstMatrix xl;
  const float* bias = nullptr;  // [cols]
  Matrix u;                     // in: xl times the layer's matrix
  Matrix y;

  TERRACE_HD void operator()(int64_t row, int64_t col) const {
    float* const unit = u.row(row) + col;
    *unit += bias[col];
    y.row(row)[col] = x0.row(row)[col] * *unit + xl.row(row)[col];
  }
};

// Its backward: u_grad = y_grad * x0 with its column sums in bias_grad (row order), x0_grad =
// y_grad
// * u, and the part of xl_grad that does not go through the matrix, y_grad.
struct CrossBackward {
  ConstMatrix x0;
  ConstMatrix u;
  ConstMatrix y_grad;
  Matrix u_grad;
  float* bias_grad = nullptr;  // [cols]
  Matrix x0_grad;              // its cols: the leading columns that want a gradient
  bool x0_adds = false;
  Matrix xl_grad;  // no data: xl is x0, and x0_grad gets both parts
  bool xl_adds = false;

  TERRACE_HD float UnitGrad(int64_t row, int64_t col) const {
    return u_grad.row(row)[col] = y_grad.row(row)[col] * x0.row(row)[col];
  }
  TERRACE_HD void X0Grad(int64_t row, int64_t col) const {
    const float g = y_grad.row(row)[col];
    const float through_product = g * u.row(row)[col];
    Put(x0_grad.row(row) + col, xl_grad.data == nullptr ? through_product + g : through_product,
        x0_adds);
  }
  TERRACE_HD void XlGrad(int64_t row, int64_t col) const {
    Put(xl_grad.row(row) + col, y_grad.row(row)[col], xl_adds);
  }
};

// The vectors of an example that PairDots multiplies: `first` if present, then the slots.
struct PairVectors {
  ConstMatrix first;  // [rows, dim]; no data: absent
  ConstMatrix slots;  // [rows, slot_count * dim]
  int slot_count = 0;
  int dim = 0;

  TERRACE_HD int has_first() const { return first.data != nullptr ? 1 : 0; }
  TERRACE_HD int count() const { return slot_count + has_first(); }
  TERRACE_HD const float* vector(int64_t row, int64_t k) const {
    return k < has_first() ? first.row(row) : slots.row(row) + (k - has_first()) * dim;
  }
};

// Column of the pair (i, j), j < i, in the output of PairDots.
TERRACE_HD int64_t PairColumn(int64_t i, int64_t j) { return i * (i - 1) / 2 + j; }

// y[row, PairColumn(i, j)] = v_i . v_j, each summed in the order of the dims.
struct PairDots {
  PairVectors v;
  Matrix y;  // [rows, count * (count - 1) / 2]

  // Vectors are turned, kLanes of them and kTileDims dims at a time, so that a lane is a pair.
  static constexpr int kTileDims = 32;

  TERRACE_HD void Tile(int64_t row, int j0, int d0) const {
    const int count = v.count();
    const int dims = v.dim - d0 < kTileDims ? v.dim - d0 : kTileDims;
    Lanes turned[kTileDims];
    for (int l = 0; l < kLanes; ++l) {
      // Lanes past the last vector repeat it; they are not stored.
      const float* const vj = v.vector(row, j0 + l < count ? j0 + l : count - 1) + d0;
      for (int d = 0; d < dims; ++d) turned[d][l] = vj[d];
    }
    for (int i = j0 + 1; i < count; ++i) {
      const float* const vi = v.vector(row, i) + d0;
      float* const out = y.row(row) + PairColumn(i, j0);
      const int pairs = i - j0 < kLanes ? i - j0 : kLanes;
      Lanes dot = {};
      if (d0 > 0) LoadLanes(out, pairs, dot);
      for (int d = 0; d < dims; ++d) dot += vi[d] * turned[d];
      StoreLanes(dot, pairs, false, out);
    }
  }

  TERRACE_HD void operator()(int64_t row) const {
    for (int j = 0; j + 1 < v.count(); j += kLanes)
      for (int d = 0; d < v.dim; d += kTileDims) Tile(row, j, d);
  }
};

// Gradient of v_i = the sum over j != i of y_grad(i, j) * v_j, in the order of j.
struct PairDotsBackward {
  PairVectors v;
  ConstMatrix y_grad;
  Matrix first_grad;  // no data: not wanted
  bool first_adds = false;
  Matrix slots_grad;
  bool slots_add = false;

  // Dims [d, d + kBlocks * kLanes) of v_i, or n of the only block. Several blocks are so many
  // chains of sums side by side.
  template <int kBlocks>
  TERRACE_HD void PutDims(int64_t row, int i, int d, int n) const {
    Lanes sum[kBlocks] = {};
    // The pairs (i, j) with j < i, then the pairs (j, i).
    const float* g = y_grad.row(row) + PairColumn(i, 0);
    for (int64_t j = 0; j < i; ++j, ++g) AddVector(*g, v.vector(row, j) + d, n, sum);
    g += i;
    for (int64_t j = i + 1; j < v.count(); g += j, ++j) AddVector(*g, v.vector(row, j) + d, n, sum);

    const bool is_first = i < v.has_first();
    float* const out =
        is_first ? first_grad.row(row) : slots_grad.row(row) + int64_t{i - v.has_first()} * v.dim;
    for (int b = 0; b < kBlocks; ++b)
      StoreLanes(sum[b], n, is_first ? first_adds : slots_add, out + d + b * kLanes);
  }
  template <int kBlocks>
  TERRACE_HD void AddVector(float g, const float* from, int n, Lanes (&sum)[kBlocks]) const {
    for (int b = 0; b < kBlocks; ++b) {
      Lanes at;
      LoadLanes(from + b * kLanes, n, at);
      sum[b] += g * at;
    }
  }

  TERRACE_HD void operator()(int64_t row) const {
    for (int i = 0; i < v.count(); ++i) {
      int d = 0;
      for (; d + 2 * kLanes <= v.dim; d += 2 * kLanes) PutDims<2>(row, i, d, kLanes);
      for (; d + kLanes <= v.dim; d += kLanes) PutDims<1>(row, i, d, kLanes);
      if (d < v.dim) PutDims<1>(row, i, d, v.dim - d);
    }
  }
};

}  // namespace terrace
