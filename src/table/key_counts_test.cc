#include "table/key_counts.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace terrace {
namespace {

// Counts of 1 to `limit`, of keys 0, 1, ...
KeyCounts Filled(KeyCounts counts, uint64_t keys, uint32_t limit) {
  for (uint64_t key = 0; key < keys; ++key) {
    const uint64_t hash = Mix64(key);
    const uint32_t none = 0, count = static_cast<uint32_t>(key % limit) + 1;
    uint8_t at_limit = 2;
    counts.Add({&hash, 1}, &none, &count, &at_limit);
    EXPECT_GE(at_limit, count == limit);
  }
  return counts;
}

// Counts that are too low, and keys whose count is another one's.
void ExpectCounts(const KeyCounts& counts, uint64_t keys, uint32_t limit, double shared) {
  uint64_t more = 0;
  for (uint64_t key = 0; key < keys; ++key) {
    const uint32_t count = counts.Get(Mix64(key));
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

TEST(SpilledCounts, GrowsWithNewKeysAlone) {
  SpilledCounts counts;
  for (uint64_t key = 1; key <= 1000; ++key) {
    counts.Set(key, 1);
    const size_t bytes = counts.bytes();
    for (uint64_t before = 1; before <= key; ++before) counts.Set(before, 2);
    ASSERT_EQ(counts.bytes(), bytes) << key;
    ASSERT_EQ(counts.size(), key);
    ASSERT_EQ(counts.Get(key), 2);
    ASSERT_EQ(counts.Get(key + 1), 0);
  }
}

}  // namespace
}  // namespace terrace
