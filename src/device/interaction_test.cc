#include <gtest/gtest.h>

#include <algorithm>

#include "device/dense_ops.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

struct Shape {
  int64_t rows;
  int slots, dim;
};
constexpr Shape kShapes[] = {{1, 1, 1},  {2, 2, 1},  {3, 3, 4},   {2, 5, 7},
                             {4, 8, 8},  {2, 9, 10}, {3, 26, 16}, {2, 17, 24},
                             {1, 3, 33}, {2, 4, 70}, {1, 10, 64}};

TEST(FmPool, SumsTheDotsOfAllPairs) {
  Stream stream(&CpuDevice());
  for (const Shape& s : kShapes) {
    TestMatrix x(s.rows, s.slots * s.dim, 1);
    const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
      std::vector<float> y(s.rows, 99);
      kernels.fm_pool(stream, {.x = x.view(), .slots = s.slots, .dim = s.dim, .y = y.data()});
      return y;
    });
    std::vector<double> want(s.rows, 0);
    for (int64_t r = 0; r < s.rows; ++r)
      for (int i = 0; i < s.slots; ++i)
        for (int j = 0; j < i; ++j)
          for (int d = 0; d < s.dim; ++d)
            want[r] += double{x.at(r, i * s.dim + d)} * x.at(r, j * s.dim + d);
    EXPECT_EQ(FirstDifference(got, want, 2e-5), "");
  }
}

TEST(FmPool, GradientOfAVectorIsTheSumOfTheOthers) {
  Stream stream(&CpuDevice());
  for (const Shape& s : kShapes) {
    for (bool adds : {false, true}) {
      TestMatrix x(s.rows, s.slots * s.dim, 1);
      const std::vector<float> g = RandomFloats(s.rows, 2);
      const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
        TestMatrix x_grad(s.rows, s.slots * s.dim, 3);
        kernels.fm_pool_backward(stream, {.x = x.view(),
                                          .slots = s.slots,
                                          .dim = s.dim,
                                          .y_grad = g.data(),
                                          .x_grad = x_grad.view(),
                                          .adds = adds});
        return x_grad.Elements();
      });
      const TestMatrix before(s.rows, s.slots * s.dim, 3);
      std::vector<double> want;
      for (int64_t r = 0; r < s.rows; ++r) {
        for (int c = 0; c < s.slots * s.dim; ++c) {
          want.push_back(adds ? before.at(r, c) : 0);
          for (int j = 0; j < s.slots; ++j)
            if (j != c / s.dim) want.back() += double{g[r]} * x.at(r, j * s.dim + c % s.dim);
        }
      }
      EXPECT_EQ(FirstDifference(got, want, 1e-5), "");
    }
  }
}

TEST(ResizeVectors, CutsOrPadsEachVector) {
  Stream stream(&CpuDevice());
  constexpr int kDims[][2] = {{1, 4}, {4, 1}, {7, 20}, {33, 16}, {5, 5}};
  for (const auto& dims : kDims) {
    const int x_dim = dims[0], y_dim = dims[1];
    for (const bool adds : {false, true}) {
      constexpr int kCount = 3;
      TestMatrix x(2, kCount * x_dim, 1);
      const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
        TestMatrix y(2, kCount * y_dim, 2);
        kernels.resize_vectors(stream, {.x = x.view(),
                                        .x_dim = x_dim,
                                        .y = y.view(),
                                        .y_dim = y_dim,
                                        .count = kCount,
                                        .adds = adds});
        return y.Elements();
      });
      const TestMatrix before(2, kCount * y_dim, 2);
      std::vector<double> want;
      for (int64_t r = 0; r < 2; ++r)
        for (int c = 0; c < kCount * y_dim; ++c)
          want.push_back((adds ? double{before.at(r, c)} : 0) +
                         (c % y_dim < x_dim ? x.at(r, c / y_dim * x_dim + c % y_dim) : 0));
      EXPECT_EQ(FirstDifference(got, want, 1e-6), "");
    }
  }
}

TEST(Cross, ForwardAddsTheBiasAndMultipliesByTheFirstInput) {
  Stream stream(&CpuDevice());
  for (int64_t cols : {1, 7, 8, 33, 429}) {
    TestMatrix x0(3, cols, 1), xl(3, cols, 2);
    const std::vector<float> bias = RandomFloats(cols, 3);
    const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
      TestMatrix u(3, cols, 4), y(3, cols, 5);
      kernels.cross_forward(
          stream,
          {.x0 = x0.view(), .xl = xl.view(), .bias = bias.data(), .u = u.view(), .y = y.view()});
      std::vector<float> all = u.Elements();
      const std::vector<float> out = y.Elements();
      all.insert(all.end(), out.begin(), out.end());
      return all;
    });
    const TestMatrix u(3, cols, 4);
    std::vector<double> want(2 * 3 * cols);
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const double unit = double{u.at(r, c)} + bias[c];
        want[r * cols + c] = unit;
        want[(3 + r) * cols + c] = x0.at(r, c) * unit + xl.at(r, c);
      }
    }
    EXPECT_EQ(FirstDifference(got, want, 1e-6), "");
  }
}

// Gradients of u, bias, x0 (only `x0_cols` columns) and xl, one after the other.
std::vector<double> NaiveCrossBackward(const TestMatrix& x0, const TestMatrix& u,
                                       const TestMatrix& g, int64_t x0_cols, bool same, bool adds,
                                       const TestMatrix& x0_before, const TestMatrix& xl_before) {
  std::vector<double> unit, bias(g.cols(), 0), first, last;
  for (int64_t r = 0; r < g.rows(); ++r) {
    for (int64_t c = 0; c < g.cols(); ++c) {
      unit.push_back(double{g.at(r, c)} * x0.at(r, c));
      bias[c] += unit.back();
      last.push_back(g.at(r, c) + (adds ? double{xl_before.at(r, c)} : 0));
    }
    for (int64_t c = 0; c < x0_cols; ++c)
      first.push_back(double{g.at(r, c)} * u.at(r, c) + (same ? double{g.at(r, c)} : 0) +
                      (adds ? double{x0_before.at(r, c)} : 0));
  }
  unit.insert(unit.end(), bias.begin(), bias.end());
  unit.insert(unit.end(), first.begin(), first.end());
  if (!same) unit.insert(unit.end(), last.begin(), last.end());
  return unit;
}

TEST(Cross, BackwardGivesTheGradientOfEachInput) {
  Stream stream(&CpuDevice());
  for (int64_t cols : {1, 9, 40}) {
    const int64_t x0_cols = (cols + 1) / 2;  // the dense columns want none
    for (int mode = 0; mode < 4; ++mode) {
      const bool same = (mode & 1) != 0;
      const bool adds = (mode & 2) != 0;
      TestMatrix x0(3, cols, 1), u(3, cols, 2), g(3, cols, 3);
      const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
        TestMatrix u_grad(3, cols, 4), x0_grad(3, x0_cols, 5), xl_grad(3, cols, 6);
        std::vector<float> bias_grad(cols, 99);
        kernels.cross_backward(stream, {.x0 = x0.view(),
                                        .u = u.view(),
                                        .y_grad = g.view(),
                                        .u_grad = u_grad.view(),
                                        .bias_grad = bias_grad.data(),
                                        .x0_grad = x0_grad.view(),
                                        .x0_adds = adds,
                                        .xl_grad = same ? Matrix{} : xl_grad.view(),
                                        .xl_adds = adds});
        std::vector<float> all = u_grad.Elements();
        all.insert(all.end(), bias_grad.begin(), bias_grad.end());
        for (float v : x0_grad.Elements()) all.push_back(v);
        if (!same)
          for (float v : xl_grad.Elements()) all.push_back(v);
        return all;
      });
      const TestMatrix x0_before(3, x0_cols, 5), xl_before(3, cols, 6);
      EXPECT_EQ(
          FirstDifference(
              got, NaiveCrossBackward(x0, u, g, x0_cols, same, adds, x0_before, xl_before), 1e-6),
          "");
    }
  }
}

// Vector k of a row: the first one, if present, then the slots.
float Component(const TestMatrix& first, const TestMatrix& slots, bool has_first, int64_t row,
                int k, int d, int dim) {
  if (has_first && k == 0) return first.at(row, d);
  return slots.at(row, (k - (has_first ? 1 : 0)) * dim + d);
}

TEST(PairDots, MultipliesEveryPairOnce) {
  Stream stream(&CpuDevice());
  for (const Shape& s : kShapes) {
    for (bool has_first : {false, true}) {
      const int count = s.slots + (has_first ? 1 : 0);
      TestMatrix first(s.rows, s.dim, 1), slots(s.rows, s.slots * s.dim, 2);
      const PairVectors v{.first = has_first ? ConstMatrix(first.view()) : ConstMatrix{},
                          .slots = slots.view(),
                          .slot_count = s.slots,
                          .dim = s.dim};
      const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
        TestMatrix y(s.rows, PairColumn(count, 0), 3);
        kernels.pair_dots(stream, {.v = v, .y = y.view()});
        return y.Elements();
      });
      std::vector<double> want;
      for (int64_t r = 0; r < s.rows; ++r) {
        for (int i = 1; i < count; ++i) {
          for (int j = 0; j < i; ++j) {
            want.push_back(0);
            for (int d = 0; d < s.dim; ++d)
              want.back() += double{Component(first, slots, has_first, r, i, d, s.dim)} *
                             Component(first, slots, has_first, r, j, d, s.dim);
          }
        }
      }
      EXPECT_EQ(FirstDifference(got, want, 1e-5), "");
    }
  }
}

TEST(PairDots, GradientOfAVectorIsTheWeightedSumOfTheOthers) {
  Stream stream(&CpuDevice());
  for (const Shape& s : kShapes) {
    for (int mode = 0; mode < 4; ++mode) {
      const bool has_first = (mode & 1) != 0;
      const bool adds = (mode & 2) != 0;
      const int count = s.slots + (has_first ? 1 : 0);
      TestMatrix first(s.rows, s.dim, 1), slots(s.rows, s.slots * s.dim, 2);
      TestMatrix g(s.rows, PairColumn(count, 0), 3);
      const PairVectors v{.first = has_first ? ConstMatrix(first.view()) : ConstMatrix{},
                          .slots = slots.view(),
                          .slot_count = s.slots,
                          .dim = s.dim};
      const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
        TestMatrix first_grad(s.rows, s.dim, 4), slots_grad(s.rows, s.slots * s.dim, 5);
        kernels.pair_dots_backward(stream, {.v = v,
                                            .y_grad = g.view(),
                                            .first_grad = has_first ? first_grad.view() : Matrix{},
                                            .first_adds = adds,
                                            .slots_grad = slots_grad.view(),
                                            .slots_add = adds});
        std::vector<float> all = has_first ? first_grad.Elements() : std::vector<float>{};
        for (float x : slots_grad.Elements()) all.push_back(x);
        return all;
      });
      const TestMatrix first_before(s.rows, s.dim, 4), slots_before(s.rows, s.slots * s.dim, 5);
      const auto gradient = [&](int64_t r, int i, int d) {
        double sum = adds ? Component(first_before, slots_before, has_first, r, i, d, s.dim) : 0;
        for (int j = 0; j < count; ++j)
          if (j != i)
            sum += double{g.at(r, PairColumn(std::max(i, j), std::min(i, j)))} *
                   Component(first, slots, has_first, r, j, d, s.dim);
        return sum;
      };
      std::vector<double> want;
      for (int64_t r = 0; has_first && r < s.rows; ++r)
        for (int d = 0; d < s.dim; ++d) want.push_back(gradient(r, 0, d));
      for (int64_t r = 0; r < s.rows; ++r)
        for (int i = has_first ? 1 : 0; i < count; ++i)
          for (int d = 0; d < s.dim; ++d) want.push_back(gradient(r, i, d));
      EXPECT_EQ(FirstDifference(got, want, 1e-5), "");
    }
  }
}

}  // namespace
}  // namespace terrace
