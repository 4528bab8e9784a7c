#include <gtest/gtest.h>

#include <cmath>

#include "device/dense_ops.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

constexpr uint64_t kSeed = 0x1234'5678'9abc'def0;

std::vector<float> Mask(int64_t rows, int64_t cols, double keep, uint64_t seed,
                        int64_t first_example) {
  Stream stream(&CpuDevice());
  return OnEveryIsa([&](const DenseKernels& kernels) {
    TestMatrix ones(rows, cols), y(rows, cols);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) ones.at(r, c) = 1;
    kernels.dropout(stream, {.x = ones.view(),
                             .y = y.view(),
                             .keep = keep,
                             .seed = seed,
                             .first_example = first_example});
    return y.Elements();
  });
}

TEST(Dropout, KeepsTheRightShareAndScalesIt) {
  for (double keep : {0.2, 0.5, 0.9}) {
    const std::vector<float> mask = Mask(400, 100, keep, kSeed, 0);
    double kept = 0;
    for (float m : mask) {
      EXPECT_TRUE(m == 0 || m == static_cast<float>(1 / keep));
      kept += m != 0;
    }
    // Four standard deviations of a binomial share.
    EXPECT_NEAR(kept / 40'000, keep, 4 * std::sqrt(keep * (1 - keep) / 40'000));
  }
}

TEST(Dropout, IsTheIdentityWhenEverythingIsKept) {
  EXPECT_EQ(Mask(30, 50, 1, kSeed, 0), std::vector<float>(1500, 1));
}

TEST(Dropout, DependsOnTheExampleAndNotOnTheSlice) {
  const std::vector<float> whole = Mask(12, 37, 0.5, kSeed, 100);
  const std::vector<float> part = Mask(5, 37, 0.5, kSeed, 104);
  EXPECT_EQ(std::vector<float>(whole.begin() + 4 * 37, whole.begin() + 9 * 37), part);
}

// The share of equal entries of two independent masks is one half.
double EqualShare(const std::vector<float>& a, const std::vector<float>& b) {
  double equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal / static_cast<double>(a.size());
}

TEST(Dropout, ExamplesUnitsAndSeedsAreIndependent) {
  const std::vector<float> mask = Mask(200, 200, 0.5, kSeed, 0);
  EXPECT_NEAR(EqualShare(mask, Mask(200, 200, 0.5, kSeed + 1, 0)), 0.5, 0.01);
  EXPECT_NEAR(EqualShare(mask, Mask(200, 200, 0.5, kSeed + (uint64_t{1} << 32), 0)), 0.5, 0.01);
  EXPECT_NEAR(EqualShare(mask, Mask(200, 200, 0.5, kSeed, 1)), 0.5, 0.01);
  EXPECT_NEAR(EqualShare(mask, Mask(200, 200, 0.5, kSeed, int64_t{1} << 33)), 0.5, 0.01);
  std::vector<float> shifted(mask.begin() + 1, mask.end());
  shifted.push_back(0);
  EXPECT_NEAR(EqualShare(mask, shifted), 0.5, 0.01);
}

TEST(Dropout, AddsToTheGradientWhereAsked) {
  Stream stream(&CpuDevice());
  TestMatrix x(3, 9, 1), y(3, 9, 2), written(3, 9, 2);
  const TestMatrix before(3, 9, 2);
  Dropout op{.x = x.view(), .y = written.view(), .keep = 0.5, .seed = kSeed};
  Launch(stream, op);
  op.y = y.view();
  op.adds = true;
  Launch(stream, op);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 9; ++c) EXPECT_EQ(y.at(r, c), before.at(r, c) + written.at(r, c));
}

}  // namespace
}  // namespace terrace
