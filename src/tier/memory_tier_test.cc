#include "tier/memory_tier.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "tier/digest.h"

namespace terrace {
namespace {

TableSchema SmallSchema(const std::string& name = "user", uint64_t seed = 7) {
  TableConfig config;
  config.dim = 4;
  config.initial_accumulator = 0.25;
  return TableSchema::Make(name, config, true, seed);
}

std::vector<std::byte> RowOf(const MemoryTier& tier, uint32_t position) {
  return {tier.row(position), tier.row(position) + tier.schema().layout.payload_bytes()};
}

std::vector<uint32_t> Create(MemoryTier& tier, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> positions(keys.size());
  tier.FindOrCreate(keys, positions);
  return positions;
}

TEST(MemoryTier, StartsWithTheDefaultRowOnly) {
  MemoryTier tier(SmallSchema());
  EXPECT_EQ(tier.rows(), 0);
  const std::vector<std::byte> row = RowOf(tier, 0);
  EXPECT_TRUE(std::all_of(row.begin(), row.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(MemoryTier, NewRowsHaveTheirInitialValueAndOldOnesKeepTheirs) {
  const TableSchema schema = SmallSchema();
  ASSERT_TRUE(rc::check([&] {
    MemoryTier tier(schema);
    std::map<uint64_t, std::vector<std::byte>> model;
    for (int b = *rc::gen::inRange(1, 8); b > 0; --b) {
      const auto keys = *rc::gen::unique<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 300));
      const std::vector<uint32_t> positions = Create(tier, keys);
      for (size_t i = 0; i < keys.size(); ++i) {
        RC_ASSERT(positions[i] > 0u);
        RC_ASSERT(tier.key(positions[i]) == keys[i]);
        auto [it, is_new] = model.try_emplace(keys[i], schema.layout.payload_bytes());
        if (is_new) InitRow(schema, keys[i], it->second.data());
        RC_ASSERT(RowOf(tier, positions[i]) == it->second);
        // As the train stage does.
        const auto value = static_cast<std::byte>(RandomBits(b, keys[i]));
        std::memset(tier.base() + positions[i] * schema.layout.stride, static_cast<int>(value), 8);
        std::memset(it->second.data(), static_cast<int>(value), 8);
      }
    }
    RC_ASSERT(tier.rows() == static_cast<int64_t>(model.size()));
  }));
}

TEST(MemoryTier, FindCreatesNothing) {
  MemoryTier tier(SmallSchema());
  const std::vector<uint32_t> created = Create(tier, {3, 4});
  const std::vector<uint64_t> keys = {9, 4, 3, 0};
  std::vector<uint32_t> positions(keys.size());
  static_cast<const MemoryTier&>(tier).Find(keys, positions);
  EXPECT_EQ(positions, (std::vector<uint32_t>{0, created[1], created[0], 0}));
  EXPECT_EQ(tier.rows(), 2);
}

TEST(MemoryTier, RowsStayWhereTheyAreWhileTheTierGrows) {
  MemoryTier tier(SmallSchema());
  const std::vector<uint32_t> first = Create(tier, {42});
  const std::byte* const row = tier.row(first[0]);
  std::vector<uint64_t> keys(10'000);
  for (uint64_t n = 0; n < 200'000; n += keys.size()) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = RandomBits(1, n + i);
    Create(tier, keys);
  }
  EXPECT_EQ(Create(tier, {42}), first);
  EXPECT_EQ(tier.row(first[0]), row);
  EXPECT_EQ(tier.rows(), 200'001);
  EXPECT_GE(tier.arena_bytes(), tier.rows() * tier.schema().layout.stride);
  EXPECT_LE(tier.arena_bytes(), tier.rows() * tier.schema().layout.stride + (2 << 20));
}

TEST(MemoryTier, RemovedRowsAreAbsentAndTheirPlacesAreUsedAgain) {
  MemoryTier tier(SmallSchema());
  const std::vector<uint32_t> first = Create(tier, {1, 2, 3, 4});
  std::memset(tier.base() + first[1] * tier.schema().layout.stride, 1, 8);
  tier.Remove(std::vector<uint32_t>{first[1], first[3]});
  EXPECT_EQ(tier.rows(), 2);
  std::vector<uint32_t> positions(4);
  tier.Find(std::vector<uint64_t>{1, 2, 3, 4}, positions);
  EXPECT_EQ(positions, (std::vector<uint32_t>{first[0], 0, first[2], 0}));
  const std::vector<uint32_t> again = Create(tier, {9, 1, 2, 8});
  EXPECT_EQ(again[1], first[0]);
  EXPECT_EQ((std::set<uint32_t>{again[0], again[2]}), (std::set<uint32_t>{first[1], first[3]}));
  EXPECT_EQ(again[3], 5u);
  EXPECT_EQ(tier.created(), 7);
  EXPECT_EQ(tier.removed(), 2);
  MemoryTier fresh(SmallSchema());
  Create(fresh, {1, 3, 8, 2, 9});  // 2 starts anew
  EXPECT_EQ(DigestRows(tier), DigestRows(fresh));
}

TEST(RowsDigest, LeavesOutRowsThatAreDue) {
  MemoryTier tier(SmallSchema()), part(SmallSchema());
  const std::vector<uint32_t> positions = Create(tier, {5, 6, 7});
  Create(part, {5, 7});
  const std::byte* const due = tier.row(positions[1]);
  const RowsDigest digest = DigestRows(tier, [due](const std::byte* row) { return row == due; });
  EXPECT_EQ(digest, DigestRows(part));
  EXPECT_EQ(digest.rows, 2);
}

TEST(RowsDigest, DoesNotDependOnTheOrderOfKeys) {
  MemoryTier a(SmallSchema());
  MemoryTier b(SmallSchema());
  Create(a, {1, 2, 3, 4});
  Create(b, {4, 2});
  Create(b, {1, 2, 3});
  EXPECT_EQ(DigestRows(a), DigestRows(b));
}

TEST(RowsDigest, SeesKeysWeightsStateAndName) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const auto add = [&](const MemoryTier& tier) {
    const Hash128 digest = DigestRows(tier).hash;
    return seen.insert({digest.low, digest.high}).second;
  };
  MemoryTier tier(SmallSchema());
  EXPECT_TRUE(add(tier));
  Create(tier, {1, 2});
  EXPECT_TRUE(add(tier));
  const RowLayout& layout = tier.schema().layout;
  float* const row = reinterpret_cast<float*>(tier.base() + layout.stride);
  for (int i = 0; i < layout.weights + layout.state; ++i) {
    row[i] += 1;
    EXPECT_TRUE(add(tier)) << i;
  }
  // Padding is not part of a row's value.
  TableConfig odd;
  odd.dim = 3;
  odd.optimizer = RowOptimizer::kSgd;
  MemoryTier padded(TableSchema::Make("odd", odd, false, 1));
  ASSERT_EQ(padded.schema().layout.stride, 24);
  Create(padded, {1, 2});
  EXPECT_TRUE(add(padded));
  reinterpret_cast<float*>(padded.base() + 24)[3] = 1;
  EXPECT_FALSE(add(padded));

  MemoryTier other(SmallSchema("item"));
  Create(other, {1, 2});
  EXPECT_TRUE(add(other));
  // Two rows that swap their values are not the same table.
  MemoryTier swapped(SmallSchema());
  Create(swapped, {1, 2});
  std::swap_ranges(swapped.base() + layout.stride,
                   swapped.base() + layout.stride + layout.payload_bytes(),
                   swapped.base() + 2 * layout.stride);
  EXPECT_TRUE(add(swapped));
}

}  // namespace
}  // namespace terrace
