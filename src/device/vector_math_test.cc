#include "device/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace terrace {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kUlp = 1.2e-7;  // of a float, relative

// Calls f on a fine grid of [low, high].
template <typename F>
void Sweep(double low, double high, F f) {
  constexpr int kSteps = 200'000;
  for (int i = 0; i <= kSteps; ++i) f(static_cast<float>(low + (high - low) * i / kSteps));
}

TEST(VectorMath, ExpIsWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  const auto check = [&](float x) {
    const double want = std::exp(double{x});
    worst = std::max(worst, std::abs(ExpOfNonPositive(x) - want) / want);
  };
  Sweep(-87, 0, check);
  Sweep(-1, 0, check);
  EXPECT_LT(worst, 2 * kUlp);
  EXPECT_EQ(ExpOfNonPositive(0), 1.0f);
}

TEST(VectorMath, ExpNeverReachesZero) {
  EXPECT_GT(ExpOfNonPositive(-1000), 1e-38f);
  EXPECT_LT(ExpOfNonPositive(-1000), 2e-38f);
  EXPECT_GT(ExpOfNonPositive(-kInf), 1e-38f);
}

TEST(VectorMath, SigmoidIsAccurateInBothTails) {
  double worst = 0;
  Sweep(-80, 80, [&](float x) {
    const double want = 1 / (1 + std::exp(-double{x}));
    worst = std::max(worst, std::abs(Sigmoid(x) - want) / want);
  });
  EXPECT_LT(worst, 4 * kUlp);
  EXPECT_EQ(Sigmoid(0), 0.5f);
  EXPECT_EQ(Sigmoid(kInf), 1.0f);
  EXPECT_LT(Sigmoid(-kInf), 2e-38f);
}

TEST(VectorMath, TanhIsAccurateNearZeroAndFarFromIt) {
  double worst = 0;
  const auto check = [&](float x) {
    const double want = std::tanh(double{x});
    if (want != 0) worst = std::max(worst, std::abs(Tanh(x) - want) / std::abs(want));
  };
  Sweep(-12, 12, check);
  Sweep(-0.7, 0.7, check);
  Sweep(-1e-6, 1e-6, check);
  EXPECT_LT(worst, 4 * kUlp);
  EXPECT_EQ(Tanh(0), 0.0f);
  EXPECT_EQ(Tanh(kInf), 1.0f);
  EXPECT_EQ(Tanh(-kInf), -1.0f);
}

TEST(VectorMath, EveryActivationLetsNanThrough) {
  EXPECT_TRUE(std::isnan(ExpOfNonPositive(kNan)));
  EXPECT_TRUE(std::isnan(Activate<Activation::kRelu>(kNan)));
  EXPECT_TRUE(std::isnan(Activate<Activation::kTanh>(kNan)));
  EXPECT_TRUE(std::isnan(Activate<Activation::kSigmoid>(kNan)));
  EXPECT_TRUE(std::isnan(Activate<Activation::kNone>(kNan)));
}

template <Activation kActivation>
void CheckGradient() {
  for (double x : {-3.0, -1.0, -0.3, 0.2, 0.9, 2.5}) {
    const double h = 1e-2;
    const auto f = [](double at) { return double{Activate<kActivation>(static_cast<float>(at))}; };
    const double slope = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
    const float got = ActivationGrad<kActivation>(static_cast<float>(f(x)), 2);
    EXPECT_NEAR(got, 2 * slope, 1e-4) << x;
  }
}

TEST(VectorMath, GradientsAreTheSlopes) {
  CheckGradient<Activation::kRelu>();
  CheckGradient<Activation::kTanh>();
  CheckGradient<Activation::kSigmoid>();
  CheckGradient<Activation::kNone>();
}

}  // namespace
}  // namespace terrace
