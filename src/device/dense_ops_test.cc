#include "device/dense_ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/kernel_testing.h"

namespace terrace {
namespace {

struct Size {
  int64_t rows, cols;
};
constexpr Size kSizes[] = {{1, 1}, {1, 7}, {3, 8}, {5, 9}, {2, 16}, {7, 31}, {4, 33}, {9, 100}};
constexpr Activation kActivations[] = {Activation::kRelu, Activation::kTanh, Activation::kSigmoid,
                                       Activation::kNone};

Stream TestStream() { return Stream(&CpuDevice()); }

double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kNone:
      break;
  }
  return x;
}

double Slope(Activation activation, double y) {
  switch (activation) {
    case Activation::kRelu:
      return y > 0 ? 1 : 0;
    case Activation::kTanh:
      return 1 - y * y;
    case Activation::kSigmoid:
      return y * (1 - y);
    case Activation::kNone:
      break;
  }
  return 1;
}

TEST(DenseOps, BiasActivateAppliesBothToEveryElement) {
  Stream stream = TestStream();
  for (const Size& s : kSizes) {
    const std::vector<float> bias = RandomFloats(s.cols, 2);
    for (Activation activation : kActivations) {
      for (bool with_bias : {true, false}) {
        const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
          TestMatrix y(s.rows, s.cols, 1);
          kernels.bias_activate(
              stream,
              {.y = y.view(), .bias = with_bias ? bias.data() : nullptr, .activation = activation});
          return y.Elements();
        });
        const TestMatrix x(s.rows, s.cols, 1);
        std::vector<double> want;
        for (int64_t r = 0; r < s.rows; ++r)
          for (int64_t c = 0; c < s.cols; ++c)
            want.push_back(Apply(activation, x.at(r, c) + (with_bias ? double{bias[c]} : 0)));
        EXPECT_EQ(FirstDifference(got, want, 1e-6), "");
      }
    }
  }
}

TEST(DenseOps, ActivateBackwardScalesTheGradientAndSumsItsColumns) {
  Stream stream = TestStream();
  for (const Size& s : kSizes) {
    for (Activation activation : kActivations) {
      for (bool with_bias : {true, false}) {
        TestMatrix y(s.rows, s.cols, 1);
        const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
          TestMatrix grad(s.rows, s.cols, 2);
          std::vector<float> bias_grad(s.cols, 99);
          kernels.activate_backward(stream, {.y = y.view(),
                                             .grad = grad.view(),
                                             .bias_grad = with_bias ? bias_grad.data() : nullptr,
                                             .activation = activation});
          std::vector<float> all = grad.Elements();
          all.insert(all.end(), bias_grad.begin(), bias_grad.end());
          return all;
        });
        const TestMatrix grad(s.rows, s.cols, 2);
        std::vector<double> want;
        std::vector<double> sums(s.cols, with_bias ? 0 : 99);
        for (int64_t r = 0; r < s.rows; ++r) {
          for (int64_t c = 0; c < s.cols; ++c) {
            want.push_back(grad.at(r, c) * Slope(activation, y.at(r, c)));
            if (with_bias) sums[c] += want.back();
          }
        }
        want.insert(want.end(), sums.begin(), sums.end());
        EXPECT_EQ(FirstDifference(got, want, 1e-6), "");
      }
    }
  }
}

TEST(DenseOps, ColumnSumsRunInRowOrder) {
  Stream stream = TestStream();
  TestMatrix grad(3, 1);
  const float rows[] = {1e8f, -1e8f, 1};  // another order gives 0
  for (int r = 0; r < 3; ++r) grad.at(r, 0) = rows[r];
  float sum = 0;
  Launch(stream, ActivateBackward{.grad = grad.view(), .bias_grad = &sum});
  EXPECT_EQ(sum, 1);
}

TEST(DenseOps, RowDotMultipliesEachRowByTheWeights) {
  Stream stream = TestStream();
  for (const Size& s : kSizes) {
    for (bool adds : {false, true}) {
      TestMatrix x(s.rows, s.cols, 1);
      const std::vector<float> w = RandomFloats(s.cols, 2);
      const std::vector<float> before = RandomFloats(s.rows, 3);
      const float bias = 0.25f;
      const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
        std::vector<float> y = before;
        kernels.row_dot(stream,
                        {.x = x.view(), .w = w.data(), .bias = &bias, .y = y.data(), .adds = adds});
        return y;
      });
      std::vector<double> want;
      for (int64_t r = 0; r < s.rows; ++r) {
        want.push_back(bias + (adds ? double{before[r]} : 0));
        for (int64_t c = 0; c < s.cols; ++c) want[r] += double{x.at(r, c)} * w[c];
      }
      EXPECT_EQ(FirstDifference(got, want, 1e-5), "");
    }
  }
}

TEST(DenseOps, RowDotGradientsAreProductsWithTheOutputsGradient) {
  Stream stream = TestStream();
  for (const Size& s : kSizes) {
    TestMatrix x(s.rows, s.cols, 1);
    const std::vector<float> w = RandomFloats(s.cols, 2);
    const std::vector<float> g = RandomFloats(s.rows, 3);
    const std::vector<float> w_grad = OnEveryIsa([&](const DenseKernels& kernels) {
      std::vector<float> out(s.cols, 99);
      kernels.row_dot_weight_grad(stream,
                                  {.x = x.view(), .y_grad = g.data(), .w_grad = out.data()});
      return out;
    });
    std::vector<double> want_w(s.cols, 0);
    for (int64_t r = 0; r < s.rows; ++r)
      for (int64_t c = 0; c < s.cols; ++c) want_w[c] += double{g[r]} * x.at(r, c);
    EXPECT_EQ(FirstDifference(w_grad, want_w, 1e-5), "");
    for (bool adds : {false, true}) {
      const std::vector<float> x_grad = OnEveryIsa([&](const DenseKernels& kernels) {
        TestMatrix out(s.rows, s.cols, 4);
        kernels.row_dot_input_grad(
            stream, {.y_grad = g.data(), .w = w.data(), .x_grad = out.view(), .adds = adds});
        return out.Elements();
      });
      const TestMatrix before(s.rows, s.cols, 4);
      std::vector<double> want_x;
      for (int64_t r = 0; r < s.rows; ++r)
        for (int64_t c = 0; c < s.cols; ++c)
          want_x.push_back(double{g[r]} * w[c] + (adds ? double{before.at(r, c)} : 0));
      EXPECT_EQ(FirstDifference(x_grad, want_x, 1e-6), "");
    }
  }
}

TEST(DenseOps, SumPartsAddsTheBiasAndEachPartInOrder) {
  Stream stream = TestStream();
  const std::vector<float> a = {1e8f, 1, 2}, b = {-1e8f, 1, 2}, c = {1, 1, 2};
  const float bias = 0.5f;
  for (int parts = 0; parts <= 3; ++parts) {
    const std::vector<float> got = OnEveryIsa([&](const DenseKernels& kernels) {
      std::vector<float> y(3, 99);
      kernels.sum_parts(stream, {.rows = 3,
                                 .bias = &bias,
                                 .part = {a.data(), b.data(), c.data()},
                                 .parts = parts,
                                 .y = y.data()});
      return y;
    });
    const float order = parts == 3 ? 1 : parts == 2 ? 0 : parts == 1 ? 1e8f : 0.5f;
    EXPECT_EQ(got[0], order);
    EXPECT_EQ(got[1], 0.5f + static_cast<float>(parts));
    EXPECT_EQ(got[2], 0.5f + 2 * static_cast<float>(parts));
  }
}

TEST(DenseOps, CopyAddAndClearTouchExactlyTheirElements) {
  Stream stream = TestStream();
  for (int64_t n : {0, 1, 7, 8, 9, 64, 100}) {
    const std::vector<float> from = RandomFloats(n + 1, 1);
    std::vector<float> to = RandomFloats(n + 1, 2);
    const std::vector<float> before = to;
    AddTo(stream, n, from.data(), to.data());
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(to[i], before[i] + from[i]);
    Launch(stream, Copy{.from = from.data(), .to = to.data(), .size = n});
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(to[i], from[i]);
    EXPECT_EQ(to[n], before[n]);
  }
  TestMatrix cleared(3, 17, 1);
  Launch(stream, Clear{.y = cleared.view()});
  EXPECT_EQ(cleared.Elements(), std::vector<float>(3 * 17, 0));
}

}  // namespace
}  // namespace terrace
