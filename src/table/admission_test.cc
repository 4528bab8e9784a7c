#include "table/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "table/admission_testing.h"

namespace terrace {
namespace {

AdmissionConfig ByCount(int64_t count, int64_t keys = 0, int64_t forget = 0) {
  AdmissionConfig config;
  config.by = AdmitBy::kCount;
  config.count = count;
  config.keys = keys;
  config.forget = forget;
  return config;
}

AdmissionConfig ByProbability(double probability, int64_t keys = 0) {
  AdmissionConfig config;
  config.by = AdmitBy::kProbability;
  config.probability = probability;
  config.keys = keys;
  return config;
}

AdmissionConfig ByScore(double score, int64_t keys = 0) {
  AdmissionConfig config;
  config.by = AdmitBy::kScore;
  config.score = score;
  config.keys = keys;
  return config;
}

KeyBatch Batch(std::vector<uint64_t> keys, uint32_t shows, uint32_t tick, uint32_t clicks = 0) {
  const size_t n = keys.size();
  return {std::move(keys), std::vector<uint32_t>(n, shows), std::vector<uint32_t>(n, clicks), tick};
}

std::vector<uint64_t> Range(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> keys(end - begin);
  std::iota(keys.begin(), keys.end(), begin);
  return keys;
}

struct Errors {
  double early;          // share of distinct keys
  double bytes_per_key;  // distinct
};

// Fails where a key is late.
Errors Compare(const AdmissionConfig& config, const std::vector<KeyBatch>& batches) {
  Admission admission(config, 7);
  ExactAdmission exact(config);
  for (const KeyBatch& batch : batches) {
    const std::vector<uint8_t> admitted = StepOn(&admission, batch);
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      ExactAdmission::Key& key = exact.Step(batch, i);
      if (exact.Admits(key)) {
        EXPECT_EQ(admitted[i], 1) << "late";
      } else {
        key.early |= admitted[i] != 0;
      }
    }
  }
  double early = 0;
  for (const auto& [key, state] : exact.keys()) early += state.early;
  const auto distinct = static_cast<double>(exact.keys().size());
  return {early / distinct, static_cast<double>(admission.bytes()) / distinct};
}

constexpr uint64_t kKeys = 100'000;

// Nine of ten keys once, the others 2 to 31 times.
std::vector<KeyBatch> MostlyOnce() {
  std::vector<uint64_t> occurrences;
  for (uint64_t key = 0; key < kKeys; ++key)
    occurrences.insert(occurrences.end(), key % 10 != 0 ? 1 : 2 + key / 10 % 30, key);
  return Shuffled(std::move(occurrences), 1000, 3);
}

class AdmissionRate : public ::testing::TestWithParam<int> {};

TEST_P(AdmissionRate, NoKeyIsLateAndFewAreEarly) {
  const Errors errors = Compare(ByCount(GetParam(), kKeys), MostlyOnce());
  RecordProperty("early_ppm", static_cast<int>(errors.early * 1e6));
  RecordProperty("centibytes_per_key", static_cast<int>(errors.bytes_per_key * 100));
  EXPECT_LT(errors.early, 0.003);
  EXPECT_LT(errors.bytes_per_key, 3.0);
}

// The worst that a stream can do: every pair with one count is early.
TEST_P(AdmissionRate, FewAreEarlyWhenEveryKeyIsOneShortOfTheLimit) {
  std::vector<uint64_t> occurrences;
  for (int i = 1; i < GetParam(); ++i)
    for (uint64_t key = 0; key < kKeys; ++key) occurrences.push_back(key);
  if (occurrences.empty()) return;
  const Errors errors = Compare(ByCount(GetParam(), kKeys), Shuffled(occurrences, 1000, 3));
  RecordProperty("early_ppm", static_cast<int>(errors.early * 1e6));
  EXPECT_LT(errors.early, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Count, AdmissionRate, ::testing::Range(1, 16));

TEST(Admission, ByScoreNoKeyIsLateAndFewAreEarly) {
  for (const double score : {1.0, 2.5, 10.0}) {
    const Errors errors = Compare(ByScore(score, kKeys), MostlyOnce());
    EXPECT_LT(errors.early, 0.001) << score;
    EXPECT_LT(errors.bytes_per_key, 6.5) << score;
  }
}

TEST(Admission, KeepsItsRatesWhileItGrowsFromLittle) {
  // Words of 32 bits double; those of 16 bits get a further layer.
  for (const int64_t keys : {0, 1, 1000, 30'000})
    for (const int count : {2, 3, 15, 16, 300}) {
      const Errors errors = Compare(ByCount(count, keys), MostlyOnce());
      EXPECT_LT(errors.early, 0.01) << keys << " " << count;
      EXPECT_LT(errors.bytes_per_key, 14.0) << keys << " " << count;
    }
}

TEST(Admission, ByAllAdmitsEveryKeyAndRemembersNothing) {
  Admission admission(AdmissionConfig{}, 1);
  std::vector<uint8_t> admitted(2);
  EXPECT_EQ(admission.Step(std::vector<uint64_t>{1, 2}, {}, {}, 5, admitted), 2);
  EXPECT_THAT(admitted, testing::Each(1));
  EXPECT_TRUE(admission.Admitted(77));
  EXPECT_EQ(admission.bytes(), 0);
}

TEST(Admission, CountsOccurrencesOfOneBatchAndOfMany) {
  Admission admission(ByCount(4), 1);
  EXPECT_THAT(StepOn(&admission, Batch({1, 2}, 3, 0)), testing::ElementsAre(0, 0));
  EXPECT_FALSE(admission.Admitted(1));
  EXPECT_THAT(StepOn(&admission, Batch({1, 3}, 1, 1)), testing::ElementsAre(1, 0));
  EXPECT_THAT(StepOn(&admission, Batch({4}, 4, 2)), testing::ElementsAre(1));
  EXPECT_TRUE(admission.Admitted(1));
  EXPECT_FALSE(admission.Admitted(2));
  EXPECT_EQ(admission.sightings(), (Admission::Sightings{2, 3}));
}

TEST(Admission, CountsStopAtTheLimit) {
  for (const int count : {1, 15, 16, 65535}) {
    Admission admission(ByCount(count), 1);
    for (uint32_t tick = 0; tick < 3; ++tick)
      EXPECT_THAT(StepOn(&admission, Batch({1, 2, 3}, UINT32_MAX, tick)), testing::Each(1));
    EXPECT_FALSE(admission.Admitted(4));
  }
}

TEST(Admission, ScoreWeighsShowsAndClicks) {
  Admission admission(ByScore(10), 1);
  EXPECT_THAT(StepOn(&admission, Batch({1}, 99, 0)), testing::ElementsAre(0));
  EXPECT_THAT(StepOn(&admission, Batch({2}, 9, 0, 9)), testing::ElementsAre(0));
  EXPECT_THAT(StepOn(&admission, Batch({1}, 1, 1)), testing::ElementsAre(1));
  EXPECT_THAT(StepOn(&admission, Batch({2}, 9, 1)), testing::ElementsAre(0));
  EXPECT_THAT(StepOn(&admission, Batch({2}, 1, 2)), testing::ElementsAre(1));
  EXPECT_THAT(StepOn(&admission, Batch({3}, UINT32_MAX, 3, UINT32_MAX)), testing::ElementsAre(1));
}

TEST(Admission, ByProbabilityAKeyWaitsOneOverPBatches) {
  constexpr double kP = 0.05;
  constexpr uint64_t kN = 20'000;
  Admission admission(ByProbability(kP, kN), 3);
  std::vector<uint32_t> waits(kN, 0);
  std::vector<uint8_t> admitted(kN, 0), before;
  const std::vector<uint64_t> keys = Range(0, kN);
  for (int batch = 0; batch < 400; ++batch) {
    before = admitted;
    admission.Step(keys, {}, {}, 9, admitted);  // the tick stands still; coins are of batches
    for (uint64_t i = 0; i < kN; ++i) {
      ASSERT_GE(admitted[i], before[i]);
      waits[i] += admitted[i] == 0;
    }
  }
  EXPECT_THAT(admitted, testing::Each(1));
  const double mean = 1 + std::accumulate(waits.begin(), waits.end(), 0.0) / kN;
  EXPECT_NEAR(mean, 1 / kP, 5 * std::sqrt(1 - kP) / kP / std::sqrt(kN));
}

TEST(Admission, TheCoinIsOfSeedKeyAndBatch) {
  constexpr double kP = 0.3;
  const std::vector<uint64_t> keys = Range(0, 1000);
  Admission admission(ByProbability(kP), 11);
  std::vector<uint8_t> admitted(keys.size());
  std::vector<uint8_t> expected(keys.size(), 0);
  for (uint64_t batch = 0; batch < 3; ++batch) {
    admission.Step(keys, {}, {}, 0, admitted);
    for (const uint64_t key : keys) expected[key] |= UnitDouble(RandomBits(11, key, batch)) < kP;
    EXPECT_EQ(admitted, expected);
  }
}

TEST(Admission, AKeyIsKeptForForgetTicksAndForgottenAfterTwice) {
  constexpr uint32_t kForget = 10;
  for (uint32_t start = 0; start < 2 * kForget; ++start)
    for (uint32_t gap = 0; gap <= 5 * kForget; ++gap) {
      Admission admission(ByCount(2, 100, kForget), 1);
      StepOn(&admission, Batch({1, 2}, 1, start));
      StepOn(&admission, Batch({2}, 1, start));  // admitted
      StepOn(&admission, Batch({3}, 1, start + gap / 2));
      const std::vector<uint8_t> admitted = StepOn(&admission, Batch({1, 2}, 1, start + gap));
      if (gap <= kForget) {
        EXPECT_THAT(admitted, testing::Each(1)) << start << " " << gap;
      } else if (gap >= 2 * kForget) {
        EXPECT_THAT(admitted, testing::Each(0)) << start << " " << gap;
      }
    }
}

TEST(Admission, AKeyThatIsSeenOftenEnoughIsNeverForgotten) {
  Admission admission(ByCount(3, 0, 7), 1);
  StepOn(&admission, Batch({1}, 3, 5));
  for (uint32_t tick = 12; tick < 2000; tick += 7)
    ASSERT_THAT(StepOn(&admission, Batch({1, tick + 10}, 1, tick)), testing::ElementsAre(1, 0));
}

TEST(Admission, MemoryIsBoundByTheKeysOfTwoPeriods) {
  for (const int64_t keys : {0, 100'000}) {
    Admission admission(ByCount(2, keys, 100), 1);
    for (uint32_t tick = 0; tick < 2000; tick += 10)
      StepOn(&admission, Batch(Range(10'000 * tick / 10, 10'000 * (tick / 10 + 1)), 1, tick));
    // Two periods of 100,000 keys; an eighth is spare where their number was learnt.
    EXPECT_LT(static_cast<double>(admission.bytes()) / 200'000, 3.4) << keys;
  }
}

TEST(Admission, TellsFromTheStartWhatItWillTakeIfKeysIsRight) {
  Admission admission(ByCount(3, 10'000, 10), 1);
  const int64_t settled = admission.settled_bytes();
  EXPECT_GT(settled, admission.bytes());
  for (uint32_t tick = 0; tick < 50; ++tick) {
    StepOn(&admission, Batch(Range(1'000 * tick, 1'000 * (tick + 1)), 1, tick));
    ASSERT_LE(admission.bytes(), settled) << tick;
  }
  EXPECT_GT(admission.bytes(), settled / 2);
}

// Small worlds in which periods end, tables double and layers come, with a save at any time.
TEST(Admission, DecidesAsTheExactModelAndGoesOnFromASave) {
  ASSERT_TRUE(rc::check([] {
    AdmissionConfig config = *rc::gen::arbitrary<bool>()
                                 ? ByCount(*rc::gen::element<int64_t>(1, 2, 3, 9, 15, 16, 40, 300))
                                 : ByScore(*rc::gen::element(0.3, 1.0, 2.0, 7.77));
    config.keys = *rc::gen::element<int64_t>(0, 1, 50, 2000);
    config.forget = *rc::gen::element<int64_t>(0, 1, 5, 30);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const int batches = *rc::gen::inRange(1, 60);
    const int save_at = *rc::gen::inRange(0, 60);
    const uint64_t world = *rc::gen::element<uint64_t>(10, 500, 3000);
    const auto max_jump = *rc::gen::element<uint64_t>(1, 3, 20, 100);

    Admission admission(config, seed), saved(config, seed);
    ExactAdmission exact(config);
    RandomStream random(seed, 5);
    KeyBatch batch;
    int early = 0, sightings = 0;
    for (int b = 0; b < batches; ++b) {
      batch.keys.clear();
      batch.shows.clear();
      batch.clicks.clear();
      batch.tick += static_cast<uint32_t>(random.Next() % max_jump);
      for (uint64_t key = random.Next() % 8; key < world; key += 1 + random.Next() % 8) {
        batch.keys.push_back(key);
        batch.shows.push_back(1 + random.Next() % 3);
        batch.clicks.push_back(random.Next() % 2);
      }
      const std::vector<uint8_t> admitted = StepOn(&admission, batch);
      RC_ASSERT(StepOn(&saved, batch) == admitted);
      for (size_t i = 0; i < batch.keys.size(); ++i) {
        const ExactAdmission::Key& key = exact.Step(batch, i);
        RC_ASSERT(admitted[i] >= exact.Admits(key));
        RC_ASSERT(config.forget == 0 || admitted[i] >= (key.least >= exact.units().limit));
        // More where a later key of the batch has the same count.
        RC_ASSERT(admission.Admitted(batch.keys[i]) >= (admitted[i] != 0));
        early += admitted[i] > exact.Admits(key);
        ++sightings;
      }
      if (b == save_at) {
        saved = Admission(config, seed);
        saved.Load(admission.Save());
        RC_ASSERT(saved.Save() == admission.Save());
      }
    }
    RC_ASSERT(early <= 2 + sightings / 20);
    RC_ASSERT(saved.sightings() == admission.sightings());
    RC_ASSERT(saved.bytes() == admission.bytes());
  }));
}

TEST(Admission, IsTheSameForTheSameSeedAndOtherwiseByChanceOnly) {
  const std::vector<KeyBatch> batches = MostlyOnce();
  Admission a(ByProbability(0.5), 1), b(ByProbability(0.5), 1), c(ByProbability(0.5), 2);
  int64_t same = 0, all = 0;
  for (const KeyBatch& batch : batches) {
    const std::vector<uint8_t> admitted = StepOn(&a, batch), other = StepOn(&c, batch);
    ASSERT_EQ(admitted, StepOn(&b, batch));
    for (size_t i = 0; i < admitted.size(); ++i) same += admitted[i] == other[i];
    all += static_cast<int64_t>(admitted.size());
  }
  EXPECT_GT(same, all / 3);
  EXPECT_LT(same, all * 4 / 5);
}

}  // namespace
}  // namespace terrace
