#include "model/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace terrace {
namespace {

std::vector<float> Weights(uint64_t seed, int64_t in, int64_t out, Activation activation) {
  std::vector<float> w(in * out);
  InitWeights(seed, in, out, activation, w.data());
  return w;
}

void ExpectUniform(const std::vector<float>& w, double limit) {
  const auto n = static_cast<double>(w.size());
  const auto [low, high] = std::minmax_element(w.begin(), w.end());
  EXPECT_GE(*low, -limit);
  EXPECT_LE(*high, limit);
  EXPECT_LT(*low, -0.99 * limit);
  EXPECT_GT(*high, 0.99 * limit);
  const double mean = std::accumulate(w.begin(), w.end(), 0.0) / n;
  const double squares = std::inner_product(w.begin(), w.end(), w.begin(), 0.0) / n;
  EXPECT_NEAR(mean, 0, 4 * limit / std::sqrt(3 * n));
  EXPECT_NEAR(squares, limit * limit / 3, 0.03 * limit * limit);
}

TEST(InitWeights, FollowsHeBeforeARelu) {
  ExpectUniform(Weights(1, 150, 100, Activation::kRelu), std::sqrt(6.0 / 150));
}

TEST(InitWeights, FollowsGlorotOtherwise) {
  for (Activation activation : {Activation::kNone, Activation::kTanh, Activation::kSigmoid})
    ExpectUniform(Weights(1, 150, 100, activation), std::sqrt(6.0 / 250));
}

TEST(InitWeights, IsAFunctionOfTheSeed) {
  EXPECT_EQ(Weights(1, 9, 4, Activation::kRelu), Weights(1, 9, 4, Activation::kRelu));
  EXPECT_NE(Weights(1, 9, 4, Activation::kRelu), Weights(2, 9, 4, Activation::kRelu));
}

}  // namespace
}  // namespace terrace
