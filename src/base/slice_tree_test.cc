#include "base/slice_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/workers.h"

namespace terrace {
namespace {

std::string JoinText(int n) {
  std::vector<std::string> parts;
  for (int i = 0; i < n; ++i) parts.push_back(std::to_string(i));
  JoinSlices(n, [&](int64_t a, int64_t b) { parts[a] = "(" + parts[a] + "+" + parts[b] + ")"; });
  return parts[0];
}

TEST(SliceTree, JoinsSiblingsThenTheirSums) {
  EXPECT_EQ(JoinText(1), "0");
  EXPECT_EQ(JoinText(2), "(0+1)");
  EXPECT_EQ(JoinText(3), "((0+1)+2)");
  EXPECT_EQ(JoinText(8), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(JoinText(6), "(((0+1)+(2+3))+(4+5))");
}

TEST(SliceTree, CutsABatchIntoEqualSlicesWithAShorterLast) {
  const SliceShape shape = SliceShape::For(10, 4);
  EXPECT_EQ(shape.length, 3);
  EXPECT_EQ(shape.Count(10), 4);
  EXPECT_EQ(shape.Count(4), 2);
  EXPECT_EQ(shape.Begin(3), 9);
  EXPECT_EQ(shape.End(3, 10), 10);
  EXPECT_EQ(SliceShape::For(1, 8).Count(1), 1);
}

TEST(SliceTree, JoinByArrivalHasTheSameShapeInAnyOrder) {
  for (int n = 1; n <= 19; ++n) {
    for (int order = 0; order < 7; ++order) {
      std::vector<std::string> parts;
      for (int i = 0; i < n; ++i) parts.push_back(std::to_string(i));
      SliceJoin join(n);
      // 7 is coprime to every n but 7 and 14: there some slices come twice, so skip those orders.
      if (n % 7 == 0 && order > 0) continue;
      for (int i = 0; i < n; ++i) {
        const int slice = order == 0 ? n - 1 - i : (i * 7 + order) % n;
        join.Arrive(
            slice, [&](int64_t a, int64_t b) { parts[a] = "(" + parts[a] + "+" + parts[b] + ")"; });
      }
      EXPECT_EQ(parts[0], JoinText(n)) << "slices " << n << ", order " << order;
    }
  }
}

TEST(SliceTree, JoinByArrivalGivesEqualBitsFromManyThreads) {
  Workers workers("test", 4);
  SliceJoin join(0);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> sums(13);
    std::vector<float> expected(13);
    for (int i = 0; i < 13; ++i) expected[i] = 1.0f / static_cast<float>(3 * i + round + 1);
    const std::vector<float> values = expected;
    JoinSlices(13, [&](int64_t a, int64_t b) { expected[a] += expected[b]; });
    join.Reset(13);
    workers.Run(13, [&](int64_t i, int) {
      sums[i] = values[i];
      join.Arrive(i, [&](int64_t a, int64_t b) { sums[a] += sums[b]; });
    });
    ASSERT_EQ(sums[0], expected[0]);
  }
}

}  // namespace
}  // namespace terrace
