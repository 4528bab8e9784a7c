#include "tier/key_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "tier/disk_page.h"
#include "tier/disk_reader.h"

namespace terrace {
namespace {

constexpr int kTopBits = 33;  // those that large batches are sorted by

struct Sorted {
  std::vector<uint64_t> keys;
  Array<KeyItem> items, scratch;

  explicit Sorted(std::vector<uint64_t> k) : keys(std::move(k)) {
    SortKeys(keys, &items, &scratch);
  }
};

std::vector<uint64_t> RandomKeys(size_t count, uint64_t distinct) {
  std::vector<uint64_t> keys;
  RandomStream random(5, count);
  while (keys.size() < count) keys.push_back(BelowN(random.Next(), distinct));
  return keys;
}

TEST(SortKeys, SortsByTheTopBitsOfTheMixAndKeepsTheOrderOfEqualKeys) {
  for (const size_t count : {0, 1, 2, 100, 1023, 1024, 5000, 100'000})
    for (const uint64_t distinct : {uint64_t{1}, uint64_t{50}, uint64_t{1} << 60}) {
      const Sorted sorted(RandomKeys(count, distinct));
      ASSERT_EQ(sorted.items.size(), count);
      std::vector<bool> seen(count);
      for (size_t i = 0; i < count; ++i) {
        const KeyItem& item = sorted.items[i];
        ASSERT_LT(item.index, count);
        ASSERT_FALSE(seen[item.index]);
        seen[item.index] = true;
        ASSERT_EQ(item.mix, MixOfKey(sorted.keys[item.index]));
        if (i == 0) continue;
        const KeyItem& before = sorted.items[i - 1];
        ASSERT_LE(before.mix >> (64 - kTopBits), item.mix >> (64 - kTopBits));
        if (before.mix == item.mix) {
          ASSERT_LT(before.index, item.index);
        }
      }
    }
}

TEST(SortKeys, EqualKeysStayInOrderAmongThoseThatShareTheTopBits) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 4000; ++i) keys.push_back(KeyOfMix(uint64_t{9} << 40 | i * i % 7));
  const Sorted sorted(std::move(keys));
  std::map<uint64_t, uint32_t> last;
  for (const KeyItem& item : sorted.items) {
    const auto [entry, is_new] = last.try_emplace(item.mix, item.index);
    if (!is_new) {
      ASSERT_LT(std::exchange(entry->second, item.index), item.index);
    }
  }
  EXPECT_EQ(last.size(), 4u);  // squares modulo 7
}

TEST(SortItemsFully, SortsByAllBitsAndKeepsTheOrderOfEqualMixes) {
  for (const size_t count : {0, 1, 100, 1023, 1024, 50'000})
    for (const int shared : {0, 40, 60}) {  // top bits that are all the same
      Array<KeyItem> items, scratch;
      for (const uint64_t key : RandomKeys(count, count / 2 + 1))
        items.push_back({Mix64(key) >> shared, static_cast<uint32_t>(items.size())});
      std::vector<KeyItem> expected(items.begin(), items.end());
      std::stable_sort(expected.begin(), expected.end(),
                       [](const KeyItem& a, const KeyItem& b) { return a.mix < b.mix; });
      SortItemsFully(&items, &scratch);
      ASSERT_EQ(items.size(), count);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(items[i].mix, expected[i].mix) << i;
        ASSERT_EQ(items[i].index, expected[i].index) << i;
      }
    }
}

TEST(ForEachPartition, CallsForEachPartitionThatHasKeysOnceInOrder) {
  for (const int partitions : {1, 4, 4096}) {
    const PageLayout layout(64, 0, partitions);
    for (const size_t count : {0, 1, 3000}) {
      const Sorted sorted(RandomKeys(count, uint64_t{1} << 60));
      size_t items = 0;
      int last = -1;
      ForEachPartition(layout, sorted.items, [&](int partition, std::span<const KeyItem> share) {
        ASSERT_GT(partition, last);
        ASSERT_LT(partition, partitions);
        last = partition;
        ASSERT_EQ(share.data(), sorted.items.data() + items);
        items += share.size();
        ASSERT_FALSE(share.empty());
        for (const KeyItem& item : share) ASSERT_EQ(layout.PartitionOf(item.mix), partition);
      });
      EXPECT_EQ(items, count);
    }
  }
}

}  // namespace
}  // namespace terrace
