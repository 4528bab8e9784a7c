#include "cli/row_norms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;

TEST(NormHistogram, QuantilesAreRightToOnePercent) {
  for (const float scale : {1e-20f, 1e-3f, 1.0f, 1e20f}) {
    NormHistogram histogram;
    std::vector<float> norms;
    RandomStream random(1, 0);
    for (int i = 0; i < 10'001; ++i) {
      norms.push_back(scale * std::exp(static_cast<float>(BelowN(random.Next(), 1000)) / 100));
      histogram.Add(norms.back());
    }
    std::sort(norms.begin(), norms.end());
    EXPECT_EQ(histogram.min(), norms.front());
    EXPECT_EQ(histogram.max(), norms.back());
    EXPECT_NEAR(histogram.Quantile(0.5) / norms[5000], 1, 0.01);
    EXPECT_NEAR(histogram.Quantile(0.99) / norms[9900], 1, 0.01);
  }
}

TEST(NormHistogram, NothingAndTheStrange) {
  NormHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  histogram.Add(std::numeric_limits<float>::infinity());
  histogram.Add(std::nanf(""));
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.not_finite(), 2);
  histogram.Add(0);
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_EQ(histogram.max(), 0);
}

TEST(HottestRows, KeepsTheHottestInOrder) {
  HottestRows rows(3);
  for (const uint64_t key : {5, 1, 4, 2, 3}) rows.Add(key == 4 ? 100.0f : 10.0f, {key, 0, {}});
  rows.Add(std::nanf(""), {9, 0, {}});
  std::vector<uint64_t> keys;
  for (const HotRow& row : rows.Sorted()) keys.push_back(row.key);
  EXPECT_THAT(keys, ElementsAre(4, 1, 2));
}

}  // namespace
}  // namespace terrace
