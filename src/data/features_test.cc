#include "data/features.h"

#include <gtest/gtest.h>

#include <cmath>

namespace terrace {
namespace {

// Keys are part of every trained model: these values may never change.
TEST(Features, KeysNeverChange) {
  EXPECT_EQ(SlotSeed("C1"), 0x8fafe81fb14a62afu);
  EXPECT_EQ(TextKey(SlotSeed("C1"), "68fd1e64"), 0xd693ccf61d5b6a52u);
  EXPECT_EQ(TextKey(SlotSeed("C1"), ""), 0x8be0b60a6bd90122u);
  EXPECT_EQ(IntegerKey(0, 0), 0u);
  EXPECT_EQ(IntegerKey(7, 1), Mix64(7 + Mix64(1)));
}

TEST(Features, TheSameValueInAnotherSlotIsAnotherKey) {
  EXPECT_NE(TextKey(SlotSeed("C1"), "a"), TextKey(SlotSeed("C2"), "a"));
  EXPECT_NE(IntegerKey(SlotSeed("C1"), 5), IntegerKey(SlotSeed("C2"), 5));
}

TEST(Features, LogBucketsFollowTheirDefinition) {
  const std::pair<double, int64_t> cases[] = {
      {2.5, 0}, {3, 1},    {10, 5},    {1000, 47}, {1e300, 477170},  // floor(ln(x)^2)
      {2, -5},  {1.5, -4}, {1, -4},    {0.5, -3},  {0, -3},          // one for each floor(x)
      {-1, -2}, {-2, -1},  {-1.5, -1}, {-3, -7},   {-10, -11}};      // mirrored
  for (const auto& [x, bucket] : cases) EXPECT_EQ(LogBucket(x), bucket) << x;
  EXPECT_LT(LogBucket(std::numeric_limits<double>::max()), 1'000'000);
}

TEST(Features, BoundaryBucketsCountTheBoundariesNotAboveX) {
  const std::vector<double> boundaries = {0, 1.5, 10};
  const std::pair<double, int64_t> cases[] = {{-1, 0}, {0, 1}, {1, 1}, {1.5, 2}, {9, 2}, {10, 3}};
  for (const auto& [x, bucket] : cases) EXPECT_EQ(BoundaryBucket(boundaries, x), bucket) << x;
}

TEST(Features, DenseTransformsRunInOrder) {
  DenseColumn column;
  EXPECT_EQ(column.Transform(3.25), 3.25f);
  column.config.log = true;
  EXPECT_EQ(column.Transform(std::exp(2.0) - 1), 2.0f);
  EXPECT_EQ(column.Transform(-(std::exp(2.0) - 1)), -2.0f);
  EXPECT_EQ(column.Transform(0), 0.0f);
  EXPECT_EQ(column.Transform(1e-12), 1e-12f);  // no digits lost near 0
  column.config.standardise = true;
  column.mean = 1;
  column.inv_std = 4;
  EXPECT_EQ(column.Transform(std::exp(2.0) - 1), 4.0f);
  column.config.clip = {-1, 3};
  EXPECT_EQ(column.Transform(std::exp(2.0) - 1), 3.0f);
  EXPECT_EQ(column.Transform(0), -1.0f);
}

}  // namespace
}  // namespace terrace
