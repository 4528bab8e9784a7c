#include "model/dense_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

constexpr int64_t kSize = 37;
constexpr DenseOptimizerKind kKinds[] = {DenseOptimizerKind::kSgd, DenseOptimizerKind::kAdaGrad,
                                         DenseOptimizerKind::kAdam};

struct State {
  explicit State(const DenseOptimizerConfig& config)
      : params(RandomFloats(kSize, 1)), state(kSize * DenseStatePerParam(config.kind)) {}
  std::vector<float> params;
  std::vector<float> state;
};

void Step(const DenseOptimizerConfig& config, int64_t step, int64_t begin, int64_t end,
          double grad_factor, State* s) {
  Stream stream(&CpuDevice());
  std::vector<float> grads = RandomFloats(kSize, 100 + step);
  UpdateDense(stream, config,
              {.params = s->params.data(),
               .grads = grads.data(),
               .state = s->state.data(),
               .size = kSize,
               .begin = begin,
               .end = end,
               .lr = config.lr,
               .grad_factor = grad_factor,
               .step = step});
}

// The textbook in double: steps 1 .. steps.
std::vector<double> Reference(const DenseOptimizerConfig& config, int64_t steps,
                              double grad_factor) {
  const std::vector<float> start = RandomFloats(kSize, 1);
  std::vector<double> w(start.begin(), start.end()), m(kSize, 0), v(kSize, 0);
  for (int64_t t = 1; t <= steps; ++t) {
    const std::vector<float> grads = RandomFloats(kSize, 100 + t);
    for (int64_t i = 0; i < kSize; ++i) {
      const double g = grads[i] * grad_factor + config.l2 * w[i];
      switch (config.kind) {
        case DenseOptimizerKind::kSgd:
          w[i] -= config.lr * g;
          break;
        case DenseOptimizerKind::kAdaGrad:
          v[i] += g * g;
          w[i] -= config.lr * g / (std::sqrt(v[i]) + config.eps);
          break;
        case DenseOptimizerKind::kAdam: {
          m[i] = config.beta1 * m[i] + (1 - config.beta1) * g;
          v[i] = config.beta2 * v[i] + (1 - config.beta2) * g * g;
          const double mean = m[i] / (1 - std::pow(config.beta1, t));
          const double variance = v[i] / (1 - std::pow(config.beta2, t));
          w[i] -= config.lr * mean / (std::sqrt(variance) + config.eps);
          break;
        }
      }
    }
  }
  return w;
}

TEST(DenseOptimizer, MatchesTheTextbookOverManySteps) {
  for (DenseOptimizerKind kind : kKinds) {
    for (double l2 : {0.0, 0.1}) {
      for (double factor : {1.0, 0.3}) {
        const DenseOptimizerConfig config{.kind = kind, .lr = 0.01, .l2 = l2, .eps = 1e-3};
        State s(config);
        for (int64_t t = 1; t <= 50; ++t) Step(config, t, 0, kSize, factor, &s);
        EXPECT_EQ(FirstDifference(s.params, Reference(config, 50, factor), 5e-6), "");
      }
    }
  }
}

TEST(DenseOptimizer, RangesGiveTheSameBitsAsTheWhole) {
  for (DenseOptimizerKind kind : kKinds) {
    const DenseOptimizerConfig config{.kind = kind, .lr = 0.01, .l2 = 0.1};
    State whole(config), parts(config);
    for (int64_t t = 1; t <= 3; ++t) {
      Step(config, t, 0, kSize, 0.7, &whole);
      for (auto [begin, end] : {std::pair{0, 1}, {1, 14}, {14, 14}, {14, 31}, {31, 37}})
        Step(config, t, begin, end, 0.7, &parts);
    }
    EXPECT_TRUE(SameBits(whole.params, parts.params));
    EXPECT_TRUE(SameBits(whole.state, parts.state));
  }
}

TEST(DenseOptimizer, TouchesNothingOutsideItsRange) {
  for (DenseOptimizerKind kind : kKinds) {
    const DenseOptimizerConfig config{.kind = kind, .lr = 0.01};
    State s(config);
    const State before(config);
    Step(config, 1, 5, 20, 1, &s);
    for (int64_t i = 0; i < kSize; ++i)
      EXPECT_EQ(s.params[i] == before.params[i], i < 5 || i >= 20) << i;
  }
}

TEST(DenseOptimizer, GivesTheSameBitsOnEveryIsa) {
  Stream stream(&CpuDevice());
  std::vector<float> grads = RandomFloats(kSize, 2);
  const auto run = [&](auto update) {
    OnEveryIsa([&](const DenseKernels& kernels) {
      std::vector<float> all = RandomFloats(3 * kSize, 1);
      for (float& x : all) x = std::abs(x);
      update(kernels, all.data(),
             ParamUpdate{.params = all.data(),
                         .grads = grads.data(),
                         .begin = 1,
                         .end = kSize,
                         .grad_factor = 0.3f,
                         .l2 = 0.01f,
                         .lr = 0.1f});
      return all;
    });
  };
  run([&](const DenseKernels& k, float*, ParamUpdate u) { k.sgd(stream, {.common = u}); });
  run([&](const DenseKernels& k, float* all, ParamUpdate u) {
    k.adagrad(stream, {.common = u, .squares = all + kSize, .eps = 1e-8f});
  });
  run([&](const DenseKernels& k, float* all, ParamUpdate u) {
    k.adam(stream, {.common = u,
                    .mean = all + kSize,
                    .variance = all + 2 * kSize,
                    .beta1 = 0.9f,
                    .one_minus_beta1 = 0.1f,
                    .beta2 = 0.99f,
                    .one_minus_beta2 = 0.01f,
                    .rescale = 3.3f,
                    .eps = 1e-8f});
  });
}

TEST(DenseOptimizer, RefusesARangeOutsideTheParameters) {
  const DenseOptimizerConfig config;
  State s(config);
  EXPECT_THROW(Step(config, 1, 0, kSize + 1, 1, &s), Error);
  EXPECT_THROW(Step(config, 0, 0, kSize, 1, &s), Error);
}

TEST(SumOfSquares, IsExactInDoubleAndTheSameOnEveryIsa) {
  Stream stream(&CpuDevice());
  for (int64_t n : {0, 1, 7, 8, 9, 63, 1000}) {
    const std::vector<float> x = RandomFloats(n, 3, 1000);
    long double want = 0;
    for (float v : x) want += static_cast<long double>(v) * v;
    const double got = SumOfSquares(stream, x.data(), n);
    EXPECT_NEAR(got, static_cast<double>(want), 1e-12 * static_cast<double>(want));
    for (const DenseKernels* kernels : AllDenseKernels())
      EXPECT_EQ(kernels->sum_squares(stream, {.x = x.data(), .size = n}), got);
  }
}

}  // namespace
}  // namespace terrace
