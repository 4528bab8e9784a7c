#include "tier/planner.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace terrace {
namespace {

TableSchema LinearSchema() {
  TableConfig config;
  config.dim = 0;
  return TableSchema::Make("t", config, true, 1);
}

// A batch that owns its arrays.
struct TestBatch {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> offsets = {0};
  std::vector<float> values;
  std::vector<uint8_t> mean_slots;

  PlanInput input() const {
    return {keys, offsets, values, static_cast<int>(mean_slots.size()), mean_slots};
  }
};

TestBatch RandomBatch(uint64_t distinct_keys) {
  TestBatch batch;
  const int slots = *rc::gen::inRange(1, 5);
  batch.mean_slots = *rc::gen::container<std::vector<uint8_t>>(slots, rc::gen::inRange(0, 2));
  const int examples = *rc::gen::inRange(0, 30);
  for (int bag = 0; bag < examples * slots; ++bag) {
    const auto keys = *rc::gen::resize(
        5, rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, distinct_keys)));
    batch.keys.insert(batch.keys.end(), keys.begin(), keys.end());
    batch.offsets.push_back(static_cast<uint32_t>(batch.keys.size()));
  }
  if (*rc::gen::arbitrary<bool>())
    for (size_t o = 0; o < batch.keys.size(); ++o)
      batch.values.push_back(static_cast<float>(RandomBits(1, o) % 100) / 8);
  return batch;
}

// What the scale of each occurrence is by definition.
std::vector<float> ScalesOf(const TestBatch& batch) {
  std::vector<float> scales;
  const size_t slots = batch.mean_slots.size();
  for (size_t bag = 0; bag + 1 < batch.offsets.size(); ++bag)
    for (uint32_t o = batch.offsets[bag]; o < batch.offsets[bag + 1]; ++o) {
      const float value = batch.values.empty() ? 1.0f : batch.values[o];
      const auto size = static_cast<float>(batch.offsets[bag + 1] - batch.offsets[bag]);
      scales.push_back(value * (batch.mean_slots[bag % slots] != 0 ? 1.0f / size : 1.0f));
    }
  return scales;
}

void ExpectScales(const TestBatch& batch, const Array<float>& scales) {
  const std::vector<float> wanted = ScalesOf(batch);
  if (scales.empty())
    RC_ASSERT(std::all_of(wanted.begin(), wanted.end(), [](float s) { return s == 1; }));
  else
    RC_ASSERT(std::vector<float>(scales.begin(), scales.end()) == wanted);
}

TEST(Planner, TrainPlansMatchTheirDefinition) {
  ASSERT_TRUE(rc::check([] {
    MemoryTier tier(LinearSchema());
    Planner planner;
    TablePlan plan;
    std::map<uint64_t, uint32_t> model;  // key -> position
    for (int b = *rc::gen::inRange(1, 5); b > 0; --b) {
      const TestBatch batch = RandomBatch(*rc::gen::element<uint64_t>(1, 20, 100'000));
      planner.PlanTrain(batch.input(), &plan);
      PlaceRows(&tier, &plan);

      std::vector<uint64_t> unique;
      std::map<uint64_t, std::vector<uint32_t>> bags;
      std::map<uint64_t, std::vector<float>> scales;
      const std::vector<float> all_scales = ScalesOf(batch);
      for (size_t bag = 0; bag + 1 < batch.offsets.size(); ++bag)
        for (uint32_t o = batch.offsets[bag]; o < batch.offsets[bag + 1]; ++o) {
          const uint64_t key = batch.keys[o];
          model.emplace(key, static_cast<uint32_t>(model.size() + 1));
          if (bags[key].empty()) unique.push_back(key);
          bags[key].push_back(static_cast<uint32_t>(bag));
          scales[key].push_back(all_scales[o]);
        }

      RC_ASSERT(plan.positions.size() == batch.keys.size());
      for (size_t o = 0; o < batch.keys.size(); ++o)
        RC_ASSERT(plan.positions[o] == model[batch.keys[o]]);
      RC_ASSERT(plan.row_positions.size() == unique.size());
      RC_ASSERT(plan.row_offsets.size() == unique.size() + 1);
      RC_ASSERT(plan.row_bags.size() == batch.keys.size());
      RC_ASSERT(plan.row_offsets[0] == 0u);
      RC_ASSERT(plan.row_scales.size() == plan.scales.size());
      for (size_t r = 0; r < unique.size(); ++r) {
        const auto from = plan.row_offsets[r];
        const auto to = plan.row_offsets[r + 1];
        RC_ASSERT(plan.row_positions[r] == model[unique[r]]);
        RC_ASSERT(std::vector<uint32_t>(plan.row_bags.begin() + from, plan.row_bags.begin() + to) ==
                  bags[unique[r]]);
        if (!plan.row_scales.empty())
          RC_ASSERT(std::vector<float>(plan.row_scales.begin() + from,
                                       plan.row_scales.begin() + to) == scales[unique[r]]);
      }
      ExpectScales(batch, plan.scales);
      RC_ASSERT(tier.rows() == static_cast<int64_t>(model.size()));
    }
  }));
}

TEST(Planner, EvalPlansPointToRowsOrTheDefaultRowAndCreateNothing) {
  ASSERT_TRUE(rc::check([] {
    MemoryTier tier(LinearSchema());
    Planner planner;
    TablePlan plan;
    planner.PlanTrain(RandomBatch(50).input(), &plan);
    PlaceRows(&tier, &plan);
    const int64_t rows = tier.rows();
    std::map<uint64_t, uint32_t> model;
    for (int64_t p = 1; p <= rows; ++p)
      model[tier.key(static_cast<uint32_t>(p))] = static_cast<uint32_t>(p);
    const TestBatch batch = RandomBatch(100);
    planner.PlanKeys(batch.input(), &plan);
    FindRows(tier, &plan);
    RC_ASSERT(tier.rows() == rows);
    RC_ASSERT(plan.positions.size() == batch.keys.size());
    for (size_t o = 0; o < batch.keys.size(); ++o) {
      const auto it = model.find(batch.keys[o]);
      RC_ASSERT(plan.positions[o] == (it == model.end() ? 0 : it->second));
    }
    ExpectScales(batch, plan.scales);
  }));
}

TEST(Planner, LeavesScalesOutWhenAllAreOne) {
  Planner planner;
  TablePlan plan;
  // Two examples of a sum slot and a mean slot.
  TestBatch batch{{1, 2, 3, 1}, {0, 2, 3, 4, 4}, {}, {0, 1}};
  planner.PlanTrain(batch.input(), &plan);
  EXPECT_TRUE(plan.scales.empty());
  EXPECT_TRUE(plan.row_scales.empty());

  batch.offsets = {0, 1, 3, 4, 4};  // now the mean slot has a bag of two keys
  planner.PlanTrain(batch.input(), &plan);
  EXPECT_EQ(plan.scales, (Array<float>{1, 0.5, 0.5, 1}));
  EXPECT_EQ(plan.row_scales, (Array<float>{1, 1, 0.5, 0.5}));

  batch.offsets = {0, 2, 3, 4, 4};  // and back: nothing of the last plan is left
  planner.PlanTrain(batch.input(), &plan);
  EXPECT_TRUE(plan.scales.empty());
  EXPECT_TRUE(plan.row_scales.empty());
}

TEST(Planner, TakesBatchesOfAnySizeInAnyOrder) {
  MemoryTier tier(LinearSchema());
  Planner planner;
  TablePlan plan;
  std::set<uint64_t> seen;
  for (uint64_t size : {10, 50'000, 0, 3, 200'000, 1, 70'000}) {
    TestBatch batch;
    batch.mean_slots = {0};
    for (uint64_t o = 0; o < size; ++o) {
      batch.keys.push_back(RandomBits(2, RandomBits(3, size, o) % 100'000));
      batch.offsets.push_back(static_cast<uint32_t>(o + 1));
    }
    planner.PlanTrain(batch.input(), &plan);
    PlaceRows(&tier, &plan);
    seen.insert(batch.keys.begin(), batch.keys.end());
    ASSERT_EQ(tier.rows(), static_cast<int64_t>(seen.size()));
    for (uint64_t o = 0; o < size; ++o) ASSERT_EQ(tier.key(plan.positions[o]), batch.keys[o]);
    const std::set<uint64_t> unique(batch.keys.begin(), batch.keys.end());
    ASSERT_EQ(plan.row_positions.size(), unique.size());
  }
}

TEST(Planner, RefusesMoreKeysThanAPlanCanNumber) {
  Planner planner;
  TablePlan plan;
  const uint64_t key = 1;
  const std::vector<uint32_t> offsets = {0};
  const std::vector<uint8_t> mean_slots = {0};
  // Never read: the size alone is refused.
  PlanInput input{{&key, size_t{1} << 32}, offsets, {}, 1, mean_slots};
  try {
    planner.PlanTrain(input, &plan);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("a batch has 4294967296 keys"), std::string::npos);
  }
}

TEST(PackRows, GivesTheSameRowsBackFromAsFewBytesAsTheyNeed) {
  struct Case {
    size_t rows;
    bool refused;
    size_t bytes;  // of one
  };
  for (const Case& c : {Case{1, false, 2}, Case{1 << 16, false, 2}, Case{1 << 16, true, 3},
                        Case{1 << 24, false, 3}, Case{1 << 24, true, 4}}) {
    TablePlan plan;
    plan.row_keys.resize(c.rows);
    plan.refused = c.refused;
    const size_t last = c.rows - (c.refused ? 0 : 1);
    for (size_t o = 0; o < 1001; ++o)
      plan.rows.push_back(
          static_cast<uint32_t>(o % 10 == 0 ? last : RandomBits(2, o) % (last + 1)));
    const Array<uint32_t> rows = plan.rows;
    PackRows(&plan);
    EXPECT_EQ(plan.occurrences(), rows.size());
    EXPECT_EQ(plan.rows.empty(), c.bytes < 4);
    EXPECT_EQ(plan.packed_rows.size(), c.bytes < 4 ? c.bytes * rows.size() : 0);
    UnpackRows(&plan);
    EXPECT_EQ(plan.rows, rows);
    EXPECT_EQ(plan.occurrences(), rows.size());
  }
}

TEST(CountUses, CountsOccurrencesAndThoseWithAClick) {
  TestBatch batch;
  batch.keys = {7, 8, 7, 7, 9};
  batch.offsets = {0, 2, 2, 3, 5};  // two examples of two slots
  batch.mean_slots = {0, 0};
  Planner planner;
  TablePlan plan;
  planner.PlanKeys(batch.input(), &plan);
  CountUses(batch.input(), std::vector<float>{0.0f, 1.0f}, &plan);
  EXPECT_EQ(plan.shows, (Array<uint32_t>{3, 1, 1}));
  EXPECT_EQ(plan.clicks, (Array<uint32_t>{2, 0, 1}));
}

TEST(KeepRows, KeysThatGetNoRowPointToTheDefaultRowAndGetNoGradient) {
  ASSERT_TRUE(rc::check([] {
    const TestBatch batch = RandomBatch(20);
    Planner planner;
    TablePlan plan, all;
    planner.PlanKeys(batch.input(), &plan);
    planner.PlanTrain(batch.input(), &all);
    const std::vector<float> labels((batch.offsets.size() - 1) / batch.mean_slots.size());
    CountUses(batch.input(), labels, &plan);
    std::vector<uint8_t> keep;
    for (uint64_t key : plan.row_keys) keep.push_back(key % 3 != 0);
    KeepRows(keep, &plan);
    LinkRows(batch.offsets, plan.row_keys.size(), &plan);
    MemoryTier tier(LinearSchema());
    PlaceRows(&tier, &plan);
    for (size_t o = 0; o < batch.keys.size(); ++o) {
      const uint32_t position = plan.positions[o];
      RC_ASSERT((position == 0) == (batch.keys[o] % 3 == 0));
      if (position != 0) RC_ASSERT(tier.key(position) == batch.keys[o]);
    }
    // The others keep their order and their occurrences.
    RC_ASSERT(plan.row_positions.size() == plan.row_keys.size());
    size_t kept = 0;
    for (size_t r = 0; r < all.row_keys.size(); ++r) {
      if (all.row_keys[r] % 3 == 0) continue;
      RC_ASSERT(plan.row_keys[kept] == all.row_keys[r]);
      const auto bags = [](const TablePlan& p, size_t row) {
        return std::vector<uint32_t>(p.row_bags.begin() + p.row_offsets[row],
                                     p.row_bags.begin() + p.row_offsets[row + 1]);
      };
      RC_ASSERT(bags(plan, kept) == bags(all, r));
      ++kept;
    }
    RC_ASSERT(kept == plan.row_keys.size());
  }));
}

}  // namespace
}  // namespace terrace
