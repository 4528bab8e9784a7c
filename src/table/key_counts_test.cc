#include "table/key_counts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/hash.h"

namespace terrace {
namespace {

// Sets counts of `keys` hashes; those that share a count have the larger one.
KeyCounts Filled(KeyCounts counts, uint64_t keys, uint32_t limit) {
  for (uint64_t key = 0; key < keys; ++key) {
    const KeyCounts::Place place = counts.Find(Mix64(key));
    counts.Set(place, Mix64(key), std::max(place.count, static_cast<uint32_t>(key % limit) + 1));
  }
  return counts;
}

// Counts that are too low, and keys whose count is another one's.
void ExpectCounts(const KeyCounts& counts, uint64_t keys, uint32_t limit, double shared) {
  uint64_t more = 0;
  for (uint64_t key = 0; key < keys; ++key) {
    const uint32_t count = counts.Find(Mix64(key)).count;
    ASSERT_GE(count, key % limit + 1) << key;
    more += count > key % limit + 1;
  }
  EXPECT_LE(static_cast<double>(more), shared * static_cast<double>(keys));
}

TEST(KeyCounts, KeepsCountsWhateverTheLoadIs) {
  // Beyond its capacity most lines are full, and keys are aside.
  for (const uint64_t capacity : {1, 100, 5000, 20'000}) {
    ExpectCounts(Filled(KeyCounts(capacity, 15, true), 20'000, 15), 20'000, 15, 0.01);
    ExpectCounts(Filled(KeyCounts(capacity, 15, false), 20'000, 15), 20'000, 15, 0);
    ExpectCounts(Filled(KeyCounts(capacity, 65535, false), 20'000, 65535), 20'000, 65535, 0.001);
  }
}

TEST(KeyCounts, KeepsCountsWhenItDoubles) {
  for (const bool exact : {true, false}) {
    KeyCounts counts = Filled(KeyCounts(1000, 3, exact), 20'000, 3);
    int doublings = 0;
    for (; counts.Double(); ++doublings) {
      ExpectCounts(counts, 20'000, 3, 0.01);
      if (doublings == 8) break;
    }
    EXPECT_EQ(doublings, exact ? 2 : 8);
  }
}

TEST(KeyCounts, CountsItsKeysOnce) {
  KeyCounts counts = Filled(KeyCounts(3000, 15, false), 3000, 15);
  EXPECT_EQ(counts.keys(), 3000u);
  EXPECT_EQ(counts.capacity(), 3000u);
  counts = Filled(std::move(counts), 3000, 15);
  EXPECT_EQ(counts.keys(), 3000u);
  ASSERT_TRUE(counts.Double());
  EXPECT_EQ(counts.keys(), 3000u);
  EXPECT_EQ(counts.capacity(), 6000u);
}

}  // namespace
}  // namespace terrace
