#include "train/tier_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <set>

#include "base/error.h"
#include "train/tier_testing.h"

namespace terrace {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

TierNeeds SomeNeeds(int64_t budget) {
  TierNeeds needs;
  needs.budget = budget;
  needs.fixed_bytes = 60 * kMiB;
  needs.item_bytes = 300'000;
  needs.fixed_items = 8;
  needs.move_bytes = 192;
  needs.batch_rows = {20'000};
  needs.row_bytes = {100};
  return needs;
}

TierNeeds AnyNeeds() {
  TierNeeds needs;
  needs.budget = *rc::gen::inRange<int64_t>(kMiB, 4096 * kMiB);
  needs.fixed_bytes = *rc::gen::inRange<int64_t>(0, 200 * kMiB);
  needs.item_bytes = *rc::gen::inRange<int64_t>(1, 8 * kMiB);
  needs.key_bytes = *rc::gen::inRange<int64_t>(0, 2 * kMiB);
  needs.look_ahead = *rc::gen::arbitrary<bool>();
  needs.fixed_items = *rc::gen::inRange<int64_t>(0, 30);
  needs.window = *rc::gen::element<int64_t>(0, 0, 1, 5, 100);
  needs.prefetch = *rc::gen::inRange<int64_t>(1, 9);
  needs.move_bytes = *rc::gen::inRange<int64_t>(1, 400);
  needs.guests = *rc::gen::arbitrary<bool>();
  for (int t = *rc::gen::inRange(1, 5); t > 0; --t) {
    needs.batch_rows.push_back(*rc::gen::inRange<int64_t>(1, 200'000));
    needs.row_bytes.push_back(*rc::gen::inRange<int64_t>(24, 2000));
  }
  return needs;
}

// Without a value: the budget is too small, and *wanted is the one asked for.
std::optional<TierSizes> Divide(const TierNeeds& needs, int64_t* wanted) {
  try {
    return DivideBudget(needs);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("tiers.memory.budget is "));
    *wanted = BudgetIn(e.what());
    return std::nullopt;
  }
}

TEST(TierSizes, WhatIsGivenOutIsNeverMoreThanTheBudget) {
  ASSERT_TRUE(rc::check([] {
    const TierNeeds needs = AnyNeeds();
    int64_t wanted = 0;
    const std::optional<TierSizes> sizes = Divide(needs, &wanted);
    if (!sizes) RC_DISCARD("too small");
    RC_ASSERT(sizes->window >= 1);
    RC_ASSERT(needs.window == 0 || sizes->window <= needs.window);
    RC_ASSERT(sizes->moves >= 0);
    RC_ASSERT(sizes->shared_bytes >= 0);
    int64_t sum = needs.fixed_bytes + needs.QueueBytes(sizes->window) + sizes->shared_bytes;
    int64_t batch_rows = 0;
    for (size_t t = 0; t < needs.row_bytes.size(); ++t) {
      RC_ASSERT(sizes->guests[t] >= 0);
      // A batch of training always fits, however much other tables take.
      RC_ASSERT(sizes->own_rows[t] - sizes->guests[t] >= needs.batch_rows[t]);
      RC_ASSERT(needs.guests || sizes->guests[t] == 0);
      sum += sizes->own_rows[t] * needs.row_bytes[t];
      batch_rows += needs.batch_rows[t];
    }
    sum += (sizes->moves + batch_rows) * needs.move_bytes;
    RC_ASSERT(sum <= needs.budget);
  }));
}

TEST(TierSizes, ABudgetThatIsTooSmallIsRefusedWithOneThatIsEnough) {
  ASSERT_TRUE(rc::check([] {
    TierNeeds needs = AnyNeeds();
    needs.budget = *rc::gen::inRange<int64_t>(kMiB, 300 * kMiB);
    const auto share = *rc::gen::element<int64_t>(5, 20, 1000);  // of the budget, for the disk tier
    const int64_t fixed = needs.fixed_bytes;
    needs.growing_bytes = needs.budget / share;
    needs.fixed_bytes = fixed + needs.growing_bytes;
    int64_t wanted = 0;
    if (Divide(needs, &wanted)) RC_DISCARD("large enough");
    RC_ASSERT(wanted > needs.budget);
    needs.budget = wanted;
    needs.growing_bytes = needs.budget / share;
    needs.fixed_bytes = fixed + needs.growing_bytes;
    int64_t again = 0;
    RC_ASSERT(Divide(needs, &again).has_value());
  }));
}

TEST(TierSizes, TheWindowShrinksWithTheBudget) {
  int64_t last = 1000;
  std::set<int64_t> windows;
  for (int64_t budget = 1024 * kMiB; budget >= 75 * kMiB; budget = budget * 7 / 8) {
    const TierSizes sizes = DivideBudget(SomeNeeds(budget));
    EXPECT_LE(sizes.window, last) << budget;
    last = sizes.window;
    windows.insert(last);
  }
  EXPECT_EQ(last, 1);
  EXPECT_GE(windows.size(), 4U);
}

TEST(TierSizes, AWindowIsTheLargestWhoseBatchesFit) {
  TierNeeds needs = SomeNeeds(1024 * kMiB);
  needs.key_bytes = 100'000;
  for (const bool look_ahead : {false, true}) {
    needs.look_ahead = look_ahead;
    const int64_t window = needs.WindowIn(50 * kMiB);
    EXPECT_LE(needs.QueueBytes(window), 50 * kMiB);
    EXPECT_GT(needs.QueueBytes(window + 1), 50 * kMiB);
    // Keys are there until rows have places: of the windows that are known, but not in flight.
    EXPECT_EQ(needs.KeyedItems(5) - needs.KeyedItems(4), look_ahead ? 2 : 1);
    EXPECT_EQ(needs.Items(5) - needs.Items(4), look_ahead ? 3 : 2);
  }
}

TEST(TierSizes, AGivenWindowIsKeptWhereItFits) {
  TierNeeds needs = SomeNeeds(1024 * kMiB);
  needs.window = 3;
  EXPECT_EQ(DivideBudget(needs).window, 3);
  needs.window = 200;
  EXPECT_EQ(DivideBudget(needs).window, 200);
  needs.budget = 100 * kMiB;
  EXPECT_LT(DivideBudget(needs).window, 200);
}

}  // namespace
}  // namespace terrace
