#include "cli/data_info_counter.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/random.h"

namespace terrace {
namespace {

TEST(KeyCounter, CountsEveryKeyWhileThereAreFew) {
  EXPECT_TRUE(rc::check([] {
    const int64_t distinct = *rc::gen::inRange<int64_t>(1, 400);
    KeyCounter counter(400);
    std::map<uint64_t, int64_t> expected;
    const int adds = *rc::gen::inRange(0, 2000);
    for (int i = 0; i < adds; ++i) {
      // Also small keys, 0 among them, and keys that differ only in their upper half.
      const uint64_t id = BelowN(RandomBits(5, i), distinct);
      const uint64_t key = id % 3 == 0 ? id : id % 3 == 1 ? id << 40 : Mix64(id);
      counter.Add(key);
      ++expected[key];
    }
    std::vector<int64_t> counts;
    for (const auto& [key, count] : expected) counts.push_back(count);
    std::sort(counts.begin(), counts.end(), std::greater<>());
    RC_ASSERT(counter.exact());
    RC_ASSERT(counter.occurrences() == adds);
    RC_ASSERT(counter.distinct() == static_cast<double>(expected.size()));
    RC_ASSERT(counter.SortedCounts() == counts);
  }));
}

TEST(KeyCounter, EstimatesManyKeysWithinAFewPercent) {
  for (const int64_t distinct : {int64_t{5'000}, int64_t{60'000}, int64_t{1'000'000}}) {
    KeyCounter counter(1'000);
    for (int round = 0; round < 2; ++round)
      for (int64_t id = 0; id < distinct; ++id) counter.Add(RandomBits(7, id));
    EXPECT_FALSE(counter.exact());
    EXPECT_EQ(counter.occurrences(), 2 * distinct);
    EXPECT_NEAR(counter.distinct() / static_cast<double>(distinct), 1, 0.03);
  }
}

TEST(KeyCounter, KeepsCountingTheFrequentKeysBeyondTheLimit) {
  KeyCounter counter(10);
  for (int round = 0; round < 100; ++round) {
    counter.Add(1);
    counter.Add(2);
    counter.Add(2);
    for (int i = 0; i < 5; ++i) counter.Add(RandomBits(round, i));
  }
  const std::vector<int64_t> counts = counter.SortedCounts();
  EXPECT_EQ(counts.size(), 10u);
  EXPECT_EQ(counts[0], 200);
  EXPECT_EQ(counts[1], 100);
  EXPECT_NEAR(counter.distinct(), 502, 25);
}

TEST(KeyCounter, SwitchesToEstimatesOnlyWithOneKeyMoreThanTheLimit) {
  KeyCounter counter(100);
  for (uint64_t id = 0; id < 100; ++id) counter.Add(Mix64(id));
  EXPECT_TRUE(counter.exact());
  counter.Add(Mix64(5));
  EXPECT_TRUE(counter.exact());
  counter.Add(Mix64(100));
  EXPECT_FALSE(counter.exact());
  EXPECT_NEAR(counter.distinct(), 101, 3);
}

}  // namespace
}  // namespace terrace
