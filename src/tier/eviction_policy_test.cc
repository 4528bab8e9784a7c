#include "tier/eviction_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace terrace {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAreArray;

using Rows = std::vector<uint32_t>;

Rows Range(uint32_t first, uint32_t last) {
  Rows rows(last - first + 1);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// A policy and pins for its rows, none set.
struct Tier {
  Tier(PolicyKind kind, int64_t rows) : policy(EvictionPolicy::Make(kind)) { Resize(rows); }

  void Resize(int64_t rows) {
    policy->Resize(rows);
    pins.resize(rows + 1, 0);
  }
  Rows Pick(int64_t n, uint32_t done = 0) {
    Array<uint32_t> victims = {77};  // appends
    policy->Pick(n, pins, done, &victims);
    EXPECT_EQ(victims[0], 77);
    return {victims.begin() + 1, victims.end()};
  }

  std::unique_ptr<EvictionPolicy> policy;
  std::vector<uint32_t> pins;
};

class EveryPolicy : public ::testing::TestWithParam<PolicyKind> {};

INSTANTIATE_TEST_SUITE_P(, EveryPolicy,
                         ::testing::Values(PolicyKind::kLru, PolicyKind::kLruLfu,
                                           PolicyKind::kClock, PolicyKind::kNextUse),
                         [](const auto& param) {
                           std::string name = PolicyName(param.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Random batches: some rows are used and pinned, some leave, others come to free positions. Returns
// all victims in order.
Rows RunRandomBatches(PolicyKind kind, uint64_t seed) {
  RandomStream random(seed, 1);
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(BelowN(random.Next(), n)); };
  int64_t rows = 1 + below(300);
  Tier tier(kind, rows);
  std::set<uint32_t> present;
  Rows all_victims;
  for (uint32_t now = 1; now <= 60; ++now) {
    const uint32_t done = now < 4 ? 0 : now - 1 - below(3);
    if (below(10) == 0) tier.Resize(rows += below(100));
    Rows used;
    for (const uint32_t p : present)
      if (below(4) == 0) used.push_back(p);
    tier.policy->Use(used, now);
    for (const uint32_t p : used) tier.pins[p] = now + below(3);
    const auto free_to_leave = std::count_if(present.begin(), present.end(),
                                             [&](uint32_t p) { return tier.pins[p] <= done; });
    const auto n = static_cast<int64_t>(below(static_cast<uint64_t>(rows)));
    const Rows victims = tier.Pick(n, done);
    EXPECT_EQ(victims.size(), std::min<int64_t>(n, free_to_leave));
    for (const uint32_t p : victims) {
      EXPECT_LE(tier.pins[p], done);
      EXPECT_EQ(present.erase(p), 1) << "row " << p << " was absent";
    }
    all_victims.insert(all_victims.end(), victims.begin(), victims.end());
    Rows added;
    for (uint32_t p = 1; p <= rows; ++p)
      if (!present.contains(p) && below(2) == 0) added.push_back(p);
    tier.policy->Add(added, now);
    for (const uint32_t p : added) tier.pins[p] = now;
    present.insert(added.begin(), added.end());
  }
  return all_victims;
}

TEST_P(EveryPolicy, PicksAsManyAsMayLeaveAndNoOthers) {
  for (uint64_t seed = 1; seed <= 50 && !HasFailure(); ++seed) RunRandomBatches(GetParam(), seed);
}

TEST_P(EveryPolicy, SameCallsGiveTheSameVictims) {
  EXPECT_EQ(RunRandomBatches(GetParam(), 9), RunRandomBatches(GetParam(), 9));
}

TEST_P(EveryPolicy, FindsTheFewRowsThatAreNotPinned) {
  Tier tier(GetParam(), 10'000);
  tier.policy->Add(Range(1, 10'000), 1);
  std::fill(tier.pins.begin(), tier.pins.end(), 5);
  EXPECT_TRUE(tier.Pick(100, 4).empty());
  tier.pins[9'000] = tier.pins[3] = 4;
  EXPECT_THAT(tier.Pick(100, 4), UnorderedElementsAreArray({3, 9'000}));
  EXPECT_EQ(tier.Pick(100, 5).size(), 100);
}

TEST_P(EveryPolicy, AnEmptyTierHasNoVictims) {
  EXPECT_TRUE(Tier(GetParam(), 0).Pick(10).empty());
  EXPECT_TRUE(Tier(GetParam(), 10).Pick(10).empty());
}

TEST_P(EveryPolicy, RowsInUseOutliveRowsOfOneUse) {
  constexpr uint32_t kRows = 4'000, kHot = 1'000;
  Tier tier(GetParam(), kRows);
  tier.policy->Add(Range(1, kRows), 1);
  Rows hot = Range(1, kHot);
  for (uint32_t now = 2; now < 2'000; ++now) {  // counts saturate
    tier.policy->Use(hot, now);
    const Rows victims = tier.Pick(200);
    ASSERT_THAT(victims, Each(Ge(kHot + 1))) << "batch " << now;
    tier.policy->Add(victims, now);
  }
}

TEST_P(EveryPolicy, TakesFewBytesARow) {
  constexpr int64_t kRows = 10'000'000, kHugePage = 2 << 20;
  Tier tier(GetParam(), 100);
  for (int64_t rows = 100; rows < kRows; rows += rows / 3) tier.policy->Resize(rows);
  tier.policy->Resize(kRows);
  EXPECT_LE(tier.policy->bytes(), (GetParam() == kDefaultPolicy ? 1 : 4) * kRows + kHugePage);
}

TEST(LruPolicy, TheOldestLeave) {
  Tier tier(PolicyKind::kLru, 1'000);
  for (uint32_t b = 0; b < 10; ++b) tier.policy->Add(Range(100 * b + 1, 100 * b + 100), b + 1);
  tier.policy->Use(Range(51, 150), 11);
  Rows oldest = Range(1, 50);
  for (const uint32_t p : Range(151, 300)) oldest.push_back(p);
  EXPECT_THAT(tier.Pick(200), UnorderedElementsAreArray(oldest));
  const Rows next = tier.Pick(150);
  EXPECT_THAT(next, IsSupersetOf(Range(301, 400)));
  EXPECT_THAT(next, Each(::testing::Le(500u)));
}

TEST(LruPolicy, IsExactAmongTheEightfoldBeforeTheHand) {
  constexpr uint32_t kRows = 10'000, kPicked = 100;
  Tier tier(PolicyKind::kLru, kRows);
  Rows last_use(kRows + 1);
  for (uint32_t now = 1; now <= 50; ++now) {
    Rows added;
    for (uint32_t p = 1; p <= kRows; ++p)
      if (RandomBits(1, p) % 50 + 1 == now) added.push_back(p);
    tier.policy->Add(added, now);
    for (const uint32_t p : added) last_use[p] = now;
  }
  for (uint32_t first = 1; first < 5'000; first += 8 * kPicked) {
    Rows ages(last_use.begin() + first, last_use.begin() + first + 8 * kPicked);
    std::sort(ages.begin(), ages.end());
    Rows found;
    for (const uint32_t p : tier.Pick(kPicked)) {
      EXPECT_TRUE(p >= first && p < first + 8 * kPicked) << p;
      found.push_back(last_use[p]);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, Rows(ages.begin(), ages.begin() + kPicked));
  }
}

TEST(LruLfuPolicy, OfOldRowsTheLeastUsedLeave) {
  for (const uint32_t start : {0u, (1u << 24) - 3}) {  // the stamp's bits run out on the way
    Tier tier(PolicyKind::kLruLfu, 400);
    tier.policy->Add(Range(1, 400), start + 1);
    tier.policy->Use(Range(101, 200), start + 2);  // often used, long ago
    tier.policy->Use(Range(101, 200), start + 3);
    tier.policy->Use(Range(201, 400), start + 9);  // used last
    EXPECT_THAT(tier.Pick(100), UnorderedElementsAreArray(Range(1, 100)));
  }
}

TEST(LruLfuPolicy, TheHalfThatWasUsedLastStays) {
  Tier tier(PolicyKind::kLruLfu, 400);
  tier.policy->Add(Range(1, 200), 1);
  for (uint32_t now = 2; now < 9; ++now) tier.policy->Use(Range(1, 200), now);
  tier.policy->Add(Range(201, 400), 9);
  EXPECT_THAT(tier.Pick(100), Each(::testing::Le(200u)));
}

TEST(ClockPolicy, RowsOfOneUseLeaveFirst) {
  Tier tier(PolicyKind::kClock, 300);
  tier.policy->Add(Range(1, 200), 1);
  tier.policy->Use(Range(1, 200), 2);
  tier.policy->Add(Range(201, 300), 3);
  EXPECT_THAT(tier.Pick(100), UnorderedElementsAreArray(Range(201, 300)));
}

TEST(ClockPolicy, OfRowsOfOneUseTheOldestLeave) {
  Tier tier(PolicyKind::kClock, 400);
  tier.policy->Add(Range(1, 300), 1);
  const Rows gone = tier.Pick(100);
  tier.policy->Add(gone, 2);
  const Rows next = tier.Pick(200);
  for (const uint32_t p : gone) EXPECT_THAT(next, ::testing::Not(::testing::Contains(p)));
}

TEST(ClockPolicy, ForgetsWhatWasPopularLongAgo) {
  Tier tier(PolicyKind::kClock, 1'000);
  tier.policy->Add(Range(1, 1'000), 1);
  for (uint32_t now = 2; now < 12; ++now) tier.policy->Use(Range(1, 100), now);
  std::set<uint32_t> old_favourites;
  for (uint32_t now = 12; now < 400; ++now) {
    const Rows victims = tier.Pick(100);
    for (const uint32_t p : victims)
      if (p <= 100) old_favourites.insert(p);
    tier.policy->Add(victims, now);
    tier.policy->Use(victims, now);
    tier.policy->Use(victims, now);
  }
  EXPECT_EQ(old_favourites.size(), 100);
}

}  // namespace
}  // namespace terrace
