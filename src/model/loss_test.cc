#include "model/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/kernel_testing.h"

namespace terrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Outcome {
  double loss = 0;
  std::vector<float> probabilities;
  std::vector<float> grads;
};

Outcome Losses(const std::vector<float>& logits, const std::vector<float>& labels,
               const std::vector<float>& weights = {}, float grad_scale = 1) {
  Stream stream(&CpuDevice());
  Outcome out;
  out.probabilities.resize(logits.size());
  out.grads.resize(logits.size());
  out.loss = LogLoss(stream, {.rows = static_cast<int64_t>(logits.size()),
                              .logits = logits.data(),
                              .labels = labels.data(),
                              .weights = weights.empty() ? nullptr : weights.data(),
                              .grad_scale = grad_scale,
                              .probabilities = out.probabilities.data(),
                              .logit_grad = out.grads.data()});
  return out;
}

// -y log p - (1 - y) log(1 - p), in long double, where these exponentials do not overflow.
double NaiveLoss(long double z, long double y) {
  return static_cast<double>(y * std::log1p(std::exp(-z)) + (1 - y) * std::log1p(std::exp(z)));
}

TEST(LogLoss, MatchesItsDefinition) {
  for (float z : {-80.f, -20.f, -3.f, -0.5f, -1e-4f, 0.f, 1e-6f, 0.7f, 4.f, 15.f, 60.f}) {
    for (float y : {0.f, 1.f, 0.3f}) {
      const Outcome got = Losses({z}, {y});
      const double want = NaiveLoss(z, y);
      EXPECT_NEAR(got.loss, want, 1e-6 * want) << z << " " << y;
      const double p = 1 / (1 + std::exp(-double{z}));
      EXPECT_NEAR(got.probabilities[0], p, 1e-6 * p);
      EXPECT_NEAR(got.grads[0], p - y, 1e-6);
    }
  }
}

TEST(LogLoss, GradientIsTheSlopeOfTheLoss) {
  for (float z : {-4.f, -0.5f, 0.3f, 2.f}) {
    for (float y : {0.f, 1.f, 0.4f}) {
      const float h = 1.f / 64;
      const double slope =
          (Losses({z + h}, {y}, {2.5f}).loss - Losses({z - h}, {y}, {2.5f}).loss) / 2 / h;
      EXPECT_NEAR(Losses({z}, {y}, {2.5f}).grads[0], slope, 2e-4);
    }
  }
}

TEST(LogLoss, WeighsExamplesAndScalesGradients) {
  const std::vector<float> z = {0.5f, -1, 2}, y = {1, 0, 0}, w = {2, 0.5f, 0};
  const Outcome got = Losses(z, y, w, 0.25f);
  double want = 0;
  for (int i = 0; i < 3; ++i) {
    const Outcome one = Losses({z[i]}, {y[i]});
    want += w[i] * one.loss;
    EXPECT_NEAR(got.grads[i], one.grads[0] * w[i] * 0.25f, 1e-7);
    EXPECT_EQ(got.probabilities[i], one.probabilities[0]);
  }
  EXPECT_NEAR(got.loss, want, 1e-12);
}

TEST(LogLoss, StaysFiniteForLargeLogits) {
  const Outcome got = Losses({3e4f, -3e4f, 3e4f, -3e4f}, {0, 1, 1, 0});
  EXPECT_NEAR(got.loss, 6e4, 1e-6);
  EXPECT_EQ(got.grads[0], 1);
  EXPECT_EQ(got.grads[1], -1);
}

TEST(LogLoss, ShowsNanAndInfinity) {
  EXPECT_TRUE(std::isnan(Losses({0, std::nanf("")}, {1, 0}).loss));
  EXPECT_TRUE(std::isnan(Losses({0, std::nanf("")}, {1, 1}).loss));
  EXPECT_TRUE(std::isnan(Losses({std::nanf("")}, {0}).probabilities[0]));
  EXPECT_FALSE(std::isfinite(Losses({kInf}, {0}).loss));
  EXPECT_FALSE(std::isfinite(Losses({-kInf}, {1}).loss));
  EXPECT_FALSE(std::isfinite(Losses({kInf}, {1}).loss));
}

TEST(LogLoss, SumsInExampleOrder) {
  const std::vector<float> z = RandomFloats(1001, 1, 5);
  const std::vector<float> y(1001, 1);
  double want = 0;
  for (float x : z) want += Losses({x}, {1}).loss;
  EXPECT_EQ(Losses(z, y).loss, want);
}

TEST(LogLoss, WorksWithoutGradient) {
  Stream stream(&CpuDevice());
  const float z = 0, y = 1;
  float p = 0;
  const double loss = LogLoss(stream, {.rows = 1, .logits = &z, .labels = &y, .probabilities = &p});
  EXPECT_NEAR(loss, std::log(2.0), 1e-7);
  EXPECT_EQ(p, 0.5f);
}

TEST(LogLoss, GivesTheSameBitsOnEveryIsa) {
  Stream stream(&CpuDevice());
  const std::vector<float> z = RandomFloats(203, 1, 30), y = RandomFloats(203, 2);
  OnEveryIsa([&](const DenseKernels& kernels) {
    std::vector<float> out(2 * 203 + 1);
    out[406] = static_cast<float>(kernels.log_loss(stream, {.rows = 203,
                                                            .logits = z.data(),
                                                            .labels = y.data(),
                                                            .grad_scale = 0.1f,
                                                            .probabilities = out.data(),
                                                            .logit_grad = out.data() + 203}));
    return out;
  });
}

}  // namespace
}  // namespace terrace
