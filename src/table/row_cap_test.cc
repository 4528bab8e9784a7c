#include "table/row_cap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"

namespace terrace {
namespace {

// A table as training uses it: rows start anew when they are due.
class Table {
 public:
  explicit Table(const LifeConfig& config) : rules_(config), cap_(&rules_) {}

  void Use(uint32_t tick, const std::set<uint64_t>& keys, float clicks = 0) {
    std::vector<RowUse> uses;
    due_.rules = &rules_;
    due_.now = tick;
    for (uint64_t key : keys) {
      RowStats& stats = rows_[key];
      if (stats.seen != 0 && due_.Due(stats)) stats = {};
      RowUse use;
      if (stats.seen != 0) use = {rules_.Level(stats), stats.seen, 0};
      rules_.Use(tick, 1, clicks, &stats);
      use.is = rules_.Level(stats);
      uses.push_back(use);
    }
    cap_.Step(tick, uses, &due_.caps);
  }

  // Keys of rows that are not due at the next tick.
  std::set<uint64_t> Alive() {
    std::set<uint64_t> alive;
    DueRule next = due_;
    ++next.now;
    for (const auto& [key, stats] : rows_)
      if (!next.Due(stats)) alive.insert(key);
    return alive;
  }

  RowCap& cap() { return cap_; }
  std::map<uint64_t, RowStats>& rows() { return rows_; }
  const LifeRules& rules() const { return rules_; }
  const DueRule& due() const { return due_; }

 private:
  const LifeRules rules_;
  RowCap cap_;
  DueRule due_;
  std::map<uint64_t, RowStats> rows_;
};

TEST(RowCap, TheLowestScoresGo) {
  LifeConfig config;
  config.max_rows = 4;
  Table table(config);
  table.Use(1, {1, 2, 3});
  table.Use(2, {1, 2});
  table.Use(3, {1});
  EXPECT_EQ(table.Alive(), (std::set<uint64_t>{1, 2, 3}));
  table.Use(4, {5}, 1);  // clicked: worth ten shows
  table.Use(5, {6}, 1);
  EXPECT_EQ(table.Alive(), (std::set<uint64_t>{1, 2, 5, 6}));
  table.Use(6, {3});  // comes anew, and has the lowest score
  EXPECT_EQ(table.Alive(), (std::set<uint64_t>{1, 2, 5, 6}));
  table.Use(7, {3}, 1);
  EXPECT_EQ(table.Alive(), (std::set<uint64_t>{1, 3, 5, 6}));
}

TEST(RowCap, OfEqualScoresTheOldestGo) {
  LifeConfig config;
  config.max_rows = 64;
  Table table(config);
  for (uint32_t tick = 1; tick <= 200; ++tick) table.Use(tick, {tick});
  const std::set<uint64_t> alive = table.Alive();
  EXPECT_GE(alive.size(), 60u);
  EXPECT_LE(alive.size(), 64u);
  EXPECT_EQ(*alive.begin(), 200 - alive.size() + 1);
  EXPECT_EQ(*alive.rbegin(), 200u);
}

TEST(RowCap, OldScoresFade) {
  LifeConfig config;
  config.max_rows = 2;
  config.decay = 0.5;
  config.decay_ticks = 1;
  Table table(config);
  table.Use(1, {1, 2}, 1);
  table.Use(20, {3, 4});
  EXPECT_EQ(table.Alive(), (std::set<uint64_t>{3, 4}));
}

// Random uses, with fading scores and with rows that leave unseen.
TEST(RowCap, CountsWhatIsAliveAndKeepsItBelowTheCap) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    LifeConfig config;
    config.max_rows = 60 + static_cast<int64_t>(seed) * 20;
    if (seed % 2 == 1) config.decay = 0.9, config.decay_ticks = 1 + static_cast<int64_t>(seed);
    if (seed % 4 >= 2) config.unseen = 40;
    Table table(config);
    uint32_t tick = 1;
    for (int batch = 0; batch < 300; ++batch, ++tick) {
      std::set<uint64_t> keys;
      for (uint64_t i = 0; i < 30; ++i) {
        const uint64_t bits = RandomBits(seed, tick, i);
        keys.insert((bits & 0xffff) % (1 + (bits >> 60) * 100));
      }
      table.Use(tick, keys, batch % 5 == 0 ? 1 : 0);
      const auto alive = static_cast<int64_t>(table.Alive().size());
      EXPECT_LE(table.cap().rows(), config.max_rows);
      if (config.unseen == 0) {
        EXPECT_EQ(table.cap().rows(), alive) << "seed " << seed << ", batch " << batch;
      } else {
        EXPECT_GE(table.cap().rows(), alive);
      }
    }
    EXPECT_GT(table.cap().rows(), config.max_rows / 2);
    EXPECT_LE(table.due().caps.size(), 8u);
  }
}

TEST(RowCap, NobodyWhoStaysHasALowerScoreThanOneWhoGoes) {
  LifeConfig config;
  config.max_rows = 50;
  Table table(config);
  std::set<uint64_t> keys;
  for (uint64_t key = 0; key < 80; ++key) {
    keys.insert(key);
    for (uint64_t uses = 0; uses <= key % 7; ++uses)
      table.Use(static_cast<uint32_t>(8 * key + uses + 1), {key});
  }
  const std::set<uint64_t> alive = table.Alive();
  ASSERT_LE(alive.size(), 50u);
  int32_t lowest = INT32_MAX;
  for (uint64_t key : alive) lowest = std::min(lowest, table.rules().Level(table.rows()[key]));
  // Those that went had at that time no higher score than the lowest of today.
  for (uint64_t key : keys)
    EXPECT_TRUE(alive.contains(key) || table.rules().Level(table.rows()[key]) <= lowest) << key;
}

}  // namespace
}  // namespace terrace
