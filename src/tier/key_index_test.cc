#include "tier/key_index.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr int64_t kStride = 24;
RowArena KeyRows() { return RowArena("test rows", int64_t{1} << 32); }

std::vector<uint32_t> FindOrInsert(KeyIndex& index, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> positions(keys.size(), 12345);
  index.FindOrInsert(keys, positions);
  return positions;
}

std::vector<uint32_t> Find(const KeyIndex& index, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> positions(keys.size(), 12345);
  index.Find(keys, positions);
  return positions;
}

// The key whose hash is `hash`: KeyIndex::Hash backwards.
uint64_t KeyOfHash(uint64_t hash) {
  const auto unshift = [](uint64_t x, int shift) {
    uint64_t result = x;
    for (int i = shift; i < 64; i += shift) result = x ^ (result >> shift);
    return result;
  };
  const auto inverse = [](uint64_t odd) {
    uint64_t x = odd;
    for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
    return x;
  };
  uint64_t x = unshift(hash, 31);
  x = unshift(x * inverse(0x94d049bb133111ebULL), 27);
  x = unshift(x * inverse(0xbf58476d1ce4e5b9ULL), 30);
  return x ^ KeyIndex::kHashSalt;
}

// Checks an index against what a map says is in it.
void ExpectHolds(const KeyIndex& index, const std::map<uint64_t, uint32_t>& model) {
  ASSERT_EQ(index.size(), static_cast<int64_t>(model.size()));
  std::vector<uint64_t> keys;
  std::vector<uint32_t> positions;
  for (const auto& [key, position] : model) {
    keys.push_back(key);
    positions.push_back(position);
    ASSERT_EQ(index.key(position), key);
  }
  ASSERT_EQ(Find(index, keys), positions);
}

// An index whose keys come and go, beside a map that says what is in it.
class Turnover {
 public:
  // Absent, distinct keys go to free positions, which are taken in no order.
  void Insert(const std::vector<uint64_t>& keys) {
    std::vector<uint32_t> positions;
    for (uint64_t key : keys) {
      positions.push_back(TakeFreePosition());
      model_.emplace(key, positions.back());
      gone_.erase(key);
    }
    rows_.Grow((next_position_ + 1) * kStride);
    index_.Insert(keys, positions);
  }
  void FillUpTo(int64_t size) {
    std::vector<uint64_t> keys(size - index_.size());
    for (uint64_t& key : keys) key = RandomBits(13, ++fresh_);
    Insert(keys);
  }
  // Every n-th key on average, in no order.
  void EraseOneOf(uint64_t n) {
    std::vector<std::pair<uint64_t, uint32_t>> erased;  // where to in the order, position
    std::erase_if(model_, [&](const auto& entry) {
      if (random_.Next() % n != 0) return false;
      gone_.insert(entry.first);
      erased.emplace_back(random_.Next(), entry.second);
      return true;
    });
    std::sort(erased.begin(), erased.end());
    std::vector<uint32_t> positions;
    for (const auto& [order, position] : erased) positions.push_back(position);
    index_.Erase(positions);
    free_.insert(free_.end(), positions.begin(), positions.end());
  }
  bool Holds(uint64_t key) const { return model_.contains(key); }
  const KeyIndex& index() const { return index_; }

  // Over all chunks, entries that passed them.
  int64_t Passed() const {
    int64_t sum = 0;
    for (const KeyChunk& chunk : index_.table()) sum += chunk.passed;
    return sum;
  }
  void Check() const {
    ExpectHolds(index_, model_);
    ASSERT_EQ(Find(index_, {gone_.begin(), gone_.end()}), std::vector<uint32_t>(gone_.size(), 0));
    CheckTable();
  }

 private:
  // Each entry is in its chunk, says whether it is at home there, and is counted on its way.
  void CheckTable() const {
    const std::span<const KeyChunk> table = index_.table();
    std::vector<int> passed(table.size());
    int64_t entries = 0;
    for (size_t c = 0; c < table.size(); ++c) {
      entries += table[c].count;
      for (int i = 0; i < table[c].count; ++i) {
        const uint64_t home = index_.map().Home(KeyIndex::Hash(index_.key(table[c].positions[i])));
        ASSERT_LE(home, c);
        ASSERT_EQ(table[c].displaced >> i & 1, home != c);
        for (uint64_t full = home; full < c; ++full) ++passed[full];
      }
    }
    ASSERT_EQ(entries, index_.size());
    for (size_t c = 0; c < table.size(); ++c) {
      if (table[c].passed == KeyChunk::kMaxPassed) continue;  // and stays so
      ASSERT_EQ(table[c].passed, passed[c]) << "chunk " << c;
    }
  }
  uint32_t TakeFreePosition() {
    if (free_.empty()) return ++next_position_;
    std::swap(free_[random_.Next() % free_.size()], free_.back());
    const uint32_t position = free_.back();
    free_.pop_back();
    return position;
  }

  RowArena rows_ = KeyRows();
  KeyIndex index_{"test", &rows_, kStride};
  std::map<uint64_t, uint32_t> model_;
  std::set<uint64_t> gone_;
  std::vector<uint32_t> free_;
  uint32_t next_position_ = 0;
  uint64_t fresh_ = 0;
  RandomStream random_{7, 7};
};

TEST(KeyIndex, NumbersKeysInTheOrderTheyCome) {
  RowArena rows = KeyRows();
  KeyIndex index("test", &rows, kStride);
  EXPECT_EQ(FindOrInsert(index, {30, 10, 20}), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(FindOrInsert(index, {20, 5, 30}), (std::vector<uint32_t>{3, 4, 1}));
  EXPECT_EQ(Find(index, {5, 6, 10, 7}), (std::vector<uint32_t>{4, 0, 2, 0}));
  EXPECT_EQ(index.size(), 4);
  EXPECT_EQ(index.key(4), 5u);
}

TEST(KeyIndex, IsEmptyAtFirst) {
  RowArena rows = KeyRows();
  KeyIndex index("test", &rows, kStride);
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(Find(index, {0, 1, ~uint64_t{0}}), (std::vector<uint32_t>{0, 0, 0}));
  EXPECT_EQ(FindOrInsert(index, {}), std::vector<uint32_t>{});
  EXPECT_EQ(index.size(), 0);
}

TEST(KeyIndex, EveryNumberIsAKey) {
  RowArena rows = KeyRows();
  KeyIndex index("test", &rows, kStride);
  std::vector<uint64_t> keys = {0, 1, ~uint64_t{0}, uint64_t{1} << 63};
  for (int i = 0; i < 64; ++i) keys.push_back(KeyOfHash(uint64_t{1} << i));
  keys.push_back(KeyOfHash(0));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const std::vector<uint32_t> positions = FindOrInsert(index, keys);
  EXPECT_EQ(std::set<uint32_t>(positions.begin(), positions.end()).size(), keys.size());
  EXPECT_EQ(Find(index, keys), positions);
}

TEST(KeyIndex, ActsLikeAMap) {
  ASSERT_TRUE(rc::check([] {
    RowArena rows = KeyRows();
    KeyIndex index("test", &rows, kStride);
    std::map<uint64_t, uint32_t> model;
    const int batches = *rc::gen::inRange(1, 12);
    for (int b = 0; b < batches; ++b) {
      // Small numbers repeat from batch to batch.
      const auto keys = *rc::gen::unique<std::vector<uint64_t>>(
          rc::gen::oneOf(rc::gen::inRange<uint64_t>(0, 600), rc::gen::arbitrary<uint64_t>()));
      std::vector<uint32_t> expected;
      for (uint64_t key : keys) {
        const auto it = model.find(key);
        expected.push_back(it == model.end() ? 0 : it->second);
      }
      RC_ASSERT(Find(index, keys) == expected);
      for (uint64_t key : keys) model.emplace(key, static_cast<uint32_t>(model.size() + 1));
      for (size_t i = 0; i < keys.size(); ++i) expected[i] = model[keys[i]];
      RC_ASSERT(FindOrInsert(index, keys) == expected);
    }
    ExpectHolds(index, model);
  }));
}

TEST(KeyIndex, KeepsEveryKeyWhileItGrowsManyTimes) {
  RowArena rows = KeyRows();
  KeyIndex index("test", &rows, kStride);
  std::map<uint64_t, uint32_t> model;
  // Through more than ten doublings, in batches of every size.
  for (uint64_t n = 1; model.size() < 60'000; n = n * 17 % 1009) {
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < n; ++i) keys.push_back(RandomBits(3, model.size() + i));
    const std::vector<uint32_t> positions = FindOrInsert(index, keys);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(positions[i], model.size() + 1);
      model[keys[i]] = positions[i];
    }
    if (n % 100 == 1) ExpectHolds(index, model);
  }
  ExpectHolds(index, model);
  std::vector<uint64_t> absent;
  for (uint64_t i = 0; i < 60'000; ++i) absent.push_back(RandomBits(4, i));
  EXPECT_EQ(Find(index, absent), std::vector<uint32_t>(absent.size(), 0));
}

// Keys that agree in the bits that choose the chunk, in the tag, or in both: long runs of full
// chunks. At this size nothing looks at bits 24 to 39 of a hash.
TEST(KeyIndex, IsCorrectForKeysThatCollide) {
  struct Case {
    const char* name;
    uint64_t fixed;
    uint64_t varying;  // bits of the hash that differ between keys
  };
  const Case cases[] = {
      {"same home and tag", 0x123456789abcdef0, uint64_t{0xfff} << 24},
      {"same group", 0x123456789abcdef0, uint64_t{0xfff} << 24 | uint64_t{0x3ff} << 54},
      {"same tag", 0x123456789abcdef0, 0xfff | uint64_t{3} << 62},
      {"last chunk, so beyond the end", ~uint64_t{0}, uint64_t{0xfff} << 24},
      {"first chunk", 0, uint64_t{0xfff} << 24},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RowArena rows = KeyRows();
    KeyIndex index("test", &rows, kStride);
    std::map<uint64_t, uint32_t> model;
    for (uint64_t n = 0; n < 1500; n += 30) {
      std::set<uint64_t> batch;
      for (uint64_t i = n; i < n + 30; ++i) {
        batch.insert(KeyOfHash((c.fixed & ~c.varying) | (RandomBits(9, i) & c.varying)));
        // Others in between, so that the table grows and splits the crowded groups.
        batch.insert(RandomBits(10, i));
        batch.insert(RandomBits(11, i));
      }
      for (uint64_t key : batch) model.emplace(key, static_cast<uint32_t>(model.size() + 1));
      FindOrInsert(index, {batch.begin(), batch.end()});
      ExpectHolds(index, model);
    }
    std::vector<uint64_t> absent;
    for (uint64_t i = 1; i < 4096; i += 7) absent.push_back(KeyOfHash(c.fixed ^ i << 24));
    std::erase_if(absent, [&](uint64_t key) { return model.contains(key); });
    ASSERT_GT(absent.size(), 100u);
    EXPECT_EQ(Find(index, absent), std::vector<uint32_t>(absent.size(), 0));
  }
}

TEST(KeyIndex, HoldsMoreKeysOfOneChunkThanItsCounterCounts) {
  RowArena rows = KeyRows();
  KeyIndex index("test", &rows, kStride);
  std::map<uint64_t, uint32_t> model;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 600; ++i) keys.push_back(KeyOfHash(i << 24));
  for (uint64_t key : keys) model.emplace(key, static_cast<uint32_t>(model.size() + 1));
  EXPECT_EQ(FindOrInsert(index, keys).back(), 600u);
  ExpectHolds(index, model);
  for (uint64_t i = 0; i < 5000; ++i) {  // splits of groups with such a chunk
    model.emplace(RandomBits(12, i), static_cast<uint32_t>(model.size() + 1));
    FindOrInsert(index, {RandomBits(12, i)});
  }
  ExpectHolds(index, model);
}

TEST(KeyIndex, TakesKeysAtGivenPositionsAndForgetsThem) {
  RowArena rows = KeyRows();
  rows.Grow(100 * kStride);
  KeyIndex index("test", &rows, kStride);
  index.Insert(std::vector<uint64_t>{30, 10, 20}, std::vector<uint32_t>{7, 99, 1});
  EXPECT_EQ(Find(index, {10, 20, 30, 40}), (std::vector<uint32_t>{99, 1, 7, 0}));
  index.Erase(std::vector<uint32_t>{99, 7});
  EXPECT_EQ(index.size(), 1);
  EXPECT_EQ(index.key(99), 10u);  // the row is as it was
  index.Insert(std::vector<uint64_t>{30, 50}, std::vector<uint32_t>{99, 7});
  EXPECT_EQ(Find(index, {10, 20, 30, 50}), (std::vector<uint32_t>{0, 1, 99, 7}));
  EXPECT_EQ(index.size(), 3);
}

TEST(KeyIndex, ActsLikeAMapFromWhichKeysAreErased) {
  ASSERT_TRUE(rc::check([] {
    Turnover turnover;
    const int batches = *rc::gen::inRange(1, 20);
    for (int b = 0; b < batches; ++b) {
      if (*rc::gen::arbitrary<bool>()) {
        turnover.EraseOneOf(*rc::gen::inRange<uint64_t>(1, 4));
      } else {
        // Many of one home chunk, the first or the last.
        auto keys = *rc::gen::unique<std::vector<uint64_t>>(
            rc::gen::oneOf(rc::gen::map(rc::gen::inRange<uint64_t>(0, 99),
                                        [](uint64_t i) { return KeyOfHash(i << 24); }),
                           rc::gen::map(rc::gen::inRange<uint64_t>(0, 99),
                                        [](uint64_t i) { return KeyOfHash(~(i << 24)); }),
                           rc::gen::inRange<uint64_t>(0, 600), rc::gen::arbitrary<uint64_t>()));
        std::erase_if(keys, [&](uint64_t key) { return turnover.Holds(key); });
        turnover.Insert(keys);
      }
      turnover.Check();
    }
  }));
}

// Growth in between, from small to large and from nearly empty to full again.
TEST(KeyIndex, KeepsTheOthersWhileKeysComeAndGo) {
  Turnover turnover;
  for (int64_t most = 10; most < 40'000; most = most * 7 / 4) {
    for (const uint64_t erase_one_of : {9, 2, 1}) {
      turnover.FillUpTo(most);
      turnover.Check();
      turnover.EraseOneOf(erase_one_of);
      turnover.Check();
    }
    ASSERT_EQ(turnover.index().size(), 0);
    ASSERT_EQ(turnover.Passed(), 0);
  }
}

TEST(KeyIndex, ForgetsKeysThatCollide) {
  // Too few to saturate a counter, even with those they displace, and enough to do so.
  for (const uint64_t crowd : {100, 600}) {
    for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}}) {  // in the first chunk, in the last
      SCOPED_TRACE(crowd);
      Turnover turnover;
      for (int64_t most = 1000; most < 5000; most += 1000) {
        std::vector<uint64_t> keys;
        for (uint64_t i = 0; i < crowd; ++i) keys.push_back(KeyOfHash(hash ^ i << 24));
        turnover.Insert(keys);
        turnover.FillUpTo(most);
        turnover.Check();
        for (const uint64_t erase_one_of : {10, 3, 2, 1}) {
          turnover.EraseOneOf(erase_one_of);
          turnover.Check();
        }
        ASSERT_EQ(turnover.index().size(), 0);
        ASSERT_TRUE(turnover.Passed() == 0 || crowd == 600);
      }
    }
  }
}

// Entries that pass a full chunk cost time in each search from there.
TEST(KeyIndex, StaysTidyHoweverManyKeysComeAndGo) {
  Turnover turnover;
  turnover.FillUpTo(20'000);
  const int64_t passed = turnover.Passed();
  ASSERT_GT(passed, 0);
  for (int round = 0; round < 20; ++round) {
    turnover.EraseOneOf(3);
    turnover.FillUpTo(20'000);
  }
  turnover.Check();
  EXPECT_LT(turnover.Passed(), passed * 3 / 2);
}

TEST(KeyIndex, RefusesWhatWouldSpoilIt) {
  RowArena rows = KeyRows();
  rows.Grow(kStride);
  KeyIndex index("test", &rows, kStride);
  const auto last = static_cast<uint32_t>(rows.size() / kStride - 1);
  const auto insert = [&](uint32_t position) {
    index.Insert(std::vector<uint64_t>{5}, std::vector<uint32_t>{position});
  };
  EXPECT_THROW(insert(0), Error);
  EXPECT_THROW(insert(last + 1), Error);
  insert(last);
  EXPECT_THROW(FindOrInsert(index, {6}), Error);
  index.Erase(std::vector<uint32_t>{last});
  EXPECT_THROW(index.Erase(std::vector<uint32_t>{last}), Error);
}

TEST(KeyIndex, CostsAtMostSixteenBytesAKey) {
  RowArena rows = KeyRows();
  KeyIndex index("test", &rows, kStride);
  EXPECT_LE(index.bytes(), 128 << 10);
  std::vector<uint64_t> keys(50'000);
  for (uint64_t n = 0; n < 3'000'000; n += keys.size()) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = RandomBits(1, n + i);
    FindOrInsert(index, keys);
    if (index.size() < 1'000'000) continue;
    // With its key, which stands in the row. The last huge page may be partly unused.
    ASSERT_LE(index.bytes() - (2 << 20) + 8 * index.size(), 16 * index.size()) << index.size();
  }
}

}  // namespace
}  // namespace terrace
