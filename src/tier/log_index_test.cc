#include "tier/log_index.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace terrace {
namespace {

using Model = std::map<uint64_t, uint32_t>;  // mix -> bits of its place

void ExpectSame(const LogIndex& index, const Model& model) {
  ASSERT_EQ(index.size(), model.size());
  Model found;
  index.ForEach([&](uint64_t mix, LogPlace place) { found[mix] = place.bits; });
  ASSERT_EQ(found, model);
  for (const auto& [mix, bits] : model) {
    ASSERT_EQ(index.Find(mix).bits, bits) << mix;
    for (const uint64_t near : {mix - 1, mix + 1})
      if (!model.contains(near)) {
        ASSERT_TRUE(index.Find(near).none()) << near;
      }
  }
}

void Set(LogIndex* index, Model* model, uint64_t mix, LogPlace place) {
  const LogPlace before = index->Set(mix, place);
  const auto [entry, is_new] = model->try_emplace(mix, place.bits);
  ASSERT_EQ(before.bits, is_new ? uint32_t{LogPlace::kNone} : entry->second) << mix;
  entry->second = place.bits;
}

LogPlace RandomPlace(RandomStream* random) {
  const uint32_t number = static_cast<uint32_t>(BelowN(random->Next(), LogPlace::kMaxNumber + 1));
  const bool tombstone = random->Next() % 2 == 0;
  return random->Next() % 2 == 0 ? LogPlace::Page(number, tombstone)
                                 : LogPlace::Buffer(number, tombstone);
}

TEST(LogPlace, TellsWhatItWasMadeOf) {
  for (const uint32_t number : {0u, 1u, LogPlace::kMaxNumber})
    for (const bool tombstone : {false, true}) {
      const LogPlace page = LogPlace::Page(number, tombstone);
      const LogPlace slot = LogPlace::Buffer(number, tombstone);
      EXPECT_EQ(page.number(), number);
      EXPECT_EQ(slot.number(), number);
      EXPECT_EQ(page.tombstone(), tombstone);
      EXPECT_EQ(slot.tombstone(), tombstone);
      EXPECT_FALSE(page.buffered() || page.none() || slot.none());
      EXPECT_TRUE(slot.buffered());
    }
  EXPECT_TRUE(LogPlace{}.none());
}

TEST(LogIndex, IsEmptyAtFirst) {
  const LogIndex index;
  EXPECT_EQ(index.size(), 0u);
  for (const uint64_t mix : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
    EXPECT_TRUE(index.Find(mix).none());
  index.ForEach([](uint64_t, LogPlace) { ADD_FAILURE(); });
}

// What the mixes of a partition may look like; the last ones only if somebody wants to annoy us.
struct Mixes {
  const char* name;
  uint64_t (*draw)(uint64_t random);
  int count;
};

class LogIndexMixes : public ::testing::TestWithParam<Mixes> {};

TEST_P(LogIndexMixes, AgreesWithAMap) {
  LogIndex index;
  Model model;
  RandomStream random(1, 2);
  for (int i = 0; i < GetParam().count; ++i) {
    Set(&index, &model, GetParam().draw(random.Next()), RandomPlace(&random));
    if ((i & (i + 1)) == 0) ExpectSame(index, model);
  }
  ExpectSame(index, model);

  // Drops about a third and gives the others a new place.
  const auto update = [](uint64_t mix, uint32_t bits) {
    return mix % 3 == 1 ? uint32_t{LogPlace::kNone} : bits ^ static_cast<uint32_t>(1 + mix % 64);
  };
  const size_t bytes = index.bytes();
  index.Update([&](uint64_t mix, LogPlace place) { return LogPlace{update(mix, place.bits)}; });
  Model updated;
  for (const auto& [mix, bits] : model)
    if (update(mix, bits) != LogPlace::kNone) updated[mix] = update(mix, bits);
  EXPECT_LE(index.bytes(), bytes);
  ExpectSame(index, updated);

  for (int i = 0; i < GetParam().count; ++i)
    Set(&index, &updated, GetParam().draw(random.Next()), RandomPlace(&random));
  ExpectSame(index, updated);
  index.Update([](uint64_t, LogPlace) { return LogPlace{}; });
  ExpectSame(index, {});
}

constexpr uint64_t kPartition = uint64_t{5} << 60;  // of 16

INSTANTIATE_TEST_SUITE_P(
    Each, LogIndexMixes,
    ::testing::Values(
        Mixes{"Even", [](uint64_t r) { return r; }, 5000},
        Mixes{"OfAPartition", [](uint64_t r) { return kPartition | r >> 4; }, 5000},
        Mixes{"Few", [](uint64_t r) { return kPartition | r % 50; }, 500},
        Mixes{"LowEnd", [](uint64_t r) { return r % 2000; }, 2000},
        Mixes{"HighEnd", [](uint64_t r) { return ~(r % 500); }, 1000},
        Mixes{"BothEnds", [](uint64_t r) { return r % 2 ? r % 100 : ~(r % 100); }, 1000},
        Mixes{"Clusters", [](uint64_t r) { return (r % 7) << 61 | (r >> 3) % 300; }, 2000}),
    [](const auto& test) { return test.param.name; });

TEST(LogIndex, HoldsTheSmallestAndTheLargestMix) {
  LogIndex index;
  Model model;
  Set(&index, &model, ~0ULL, LogPlace::Page(1, false));
  Set(&index, &model, 0, LogPlace::Page(2, true));
  Set(&index, &model, ~0ULL - 1, LogPlace::Page(3, false));
  ExpectSame(index, model);
  Set(&index, &model, ~0ULL, LogPlace::Buffer(LogPlace::kMaxNumber, true));
  for (uint64_t i = 1; i < 200; ++i) Set(&index, &model, i << 56, LogPlace::Page(9, false));
  ExpectSame(index, model);
}

TEST(LogIndex, TakesAboutThirteenBytesAKey) {
  LogIndex index;
  RandomStream random(3, 4);
  for (uint32_t i = 0; i < 200'000; ++i) {
    index.Set(random.Next(), LogPlace::Page(i, false));
    if (i >= 10'000) {
      ASSERT_LE(index.bytes(), 16 * index.size());
    }
  }
  index.Update([](uint64_t, LogPlace place) { return place; });
  EXPECT_LE(10 * index.bytes(), 131 * index.size());
}

// A walk from the start of a run to its end for each key would take hours.
TEST(LogIndex, TakesKeysInTheOrderOfTheirMixes) {
  LogIndex index;
  RandomStream random(5, 6);
  constexpr uint64_t kKeys = 1'000'000, kStep = ~uint64_t{0} / 64 / kKeys;
  for (uint64_t i = 0; i < kKeys; ++i)
    index.Set(kPartition + i * kStep + random.Next() % kStep, LogPlace::Page(7, false));
  EXPECT_EQ(index.size(), kKeys);
}

}  // namespace
}  // namespace terrace
