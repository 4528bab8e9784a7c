#include "data/synthetic.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"

namespace terrace {
namespace {

DataConfig SmallConfig() {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  config.synthetic.train_examples = 20'000;
  config.synthetic.test_examples = 10'000;
  config.synthetic.slots = 4;
  config.synthetic.features = 500;
  config.synthetic.values_per_slot = 3;
  config.synthetic.dense = 2;
  return config;
}

std::unique_ptr<ChunkProducer> Producer(const DataConfig& config, DataPart part,
                                        SyntheticKeys keys = SyntheticKeys::kHashed) {
  return MakeSyntheticProducer(config.synthetic, FeatureSpec::Resolve(config), part, keys);
}

Batch ReadAll(ChunkProducer& producer) {
  Batch all = MakeBatch(producer.shape());
  while (const std::unique_ptr<ChunkWork> work = producer.Claim()) {
    Batch chunk = MakeBatch(producer.shape());
    producer.Produce(*work, &chunk);
    AppendExamples(chunk, 0, chunk.examples, &all);
  }
  return all;
}

Batch ReadAll(const DataConfig& config, DataPart part = DataPart::kTrain,
              SyntheticKeys keys = SyntheticKeys::kHashed) {
  return ReadAll(*Producer(config, part, keys));
}

void ExpectSame(const Batch& a, const Batch& b) {
  ASSERT_EQ(a.examples, b.examples);
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (size_t g = 0; g < a.groups.size(); ++g) {
    EXPECT_EQ(a.groups[g].keys, b.groups[g].keys);
    EXPECT_EQ(a.groups[g].offsets, b.groups[g].offsets);
  }
  EXPECT_EQ(a.dense, b.dense);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.truth, b.truth);
}

double Mean(const std::vector<float>& v) {
  double sum = 0;
  for (float x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

double Deviation(const std::vector<float>& v) {
  const double mean = Mean(v);
  double sum = 0;
  for (float x : v) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / static_cast<double>(v.size()));
}

std::vector<float> Logits(const Batch& batch) {
  std::vector<float> logits;
  for (float p : batch.truth) logits.push_back(std::log(p / (1 - p)));
  return logits;
}

// A stream of drifting and one-off values.
DataConfig StreamConfig() {
  DataConfig config = SmallConfig();
  config.synthetic.one_off = 0.25;
  config.synthetic.drift = 7'000;
  return config;
}

std::map<uint64_t, int> CountKeys(const Batch& batch, int64_t first, int64_t end) {
  const KeyGroup& group = batch.groups[0];
  std::map<uint64_t, int> counts;
  for (uint32_t i = group.offsets[first * group.slots]; i < group.offsets[end * group.slots]; ++i)
    ++counts[group.keys[i]];
  return counts;
}

// The most frequent keys of examples [first, end).
std::set<uint64_t> PopularKeys(const Batch& batch, int64_t first, int64_t end, size_t n) {
  std::vector<std::pair<int, uint64_t>> order;
  for (const auto& [key, count] : CountKeys(batch, first, end)) order.emplace_back(count, key);
  std::sort(order.rbegin(), order.rend());
  std::set<uint64_t> popular;
  for (size_t i = 0; i < std::min(n, order.size()); ++i) popular.insert(order[i].second);
  return popular;
}

size_t Common(const std::set<uint64_t>& a, const std::set<uint64_t>& b) {
  return static_cast<size_t>(
      std::count_if(a.begin(), a.end(), [&](uint64_t key) { return b.contains(key); }));
}

class SyntheticOrder : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(PlainAndStream, SyntheticOrder, testing::Bool());

TEST_P(SyntheticOrder, ChunksAreTheSameInAnyOrderAndFromAnyThread) {
  const DataConfig config = GetParam() ? StreamConfig() : SmallConfig();
  const Batch expected = ReadAll(config);

  const auto producer = Producer(config, DataPart::kTrain);
  std::vector<std::unique_ptr<ChunkWork>> work;
  while (auto next = producer->Claim()) work.push_back(std::move(next));
  ASSERT_GT(work.size(), 2u);
  std::vector<Batch> chunks(work.size(), MakeBatch(producer->shape()));
  const auto produce_every_other = [&](size_t first) {
    for (size_t i = first; i < work.size(); i += 2) {
      const size_t from_the_end = work.size() - 1 - i;
      producer->Produce(*work[from_the_end], &chunks[from_the_end]);
    }
  };
  {
    std::jthread other(produce_every_other, 1);
    produce_every_other(0);
  }
  Batch all = MakeBatch(producer->shape());
  for (const Batch& chunk : chunks) AppendExamples(chunk, 0, chunk.examples, &all);
  ExpectSame(all, expected);
}

TEST_P(SyntheticOrder, MoreExamplesBeginWithTheSameOnes) {
  DataConfig config = GetParam() ? StreamConfig() : SmallConfig();
  config.synthetic.train_examples = 777;
  const Batch few = ReadAll(config);
  config.synthetic.train_examples = 9'999;
  const Batch many = ReadAll(config);
  EXPECT_EQ(many.examples, 9'999);
  Batch begin = MakeBatch(Producer(config, DataPart::kTrain)->shape());
  AppendExamples(many, 0, 777, &begin);
  ExpectSame(few, begin);
}

TEST(Synthetic, TestPartHasFreshExamplesOfTheSameHiddenModel) {
  DataConfig config = SmallConfig();
  config.synthetic.values_per_slot = 1;
  config.synthetic.slots = 2;
  config.synthetic.features = 3;
  config.synthetic.dense = 0;
  const Batch train = ReadAll(config, DataPart::kTrain);
  const Batch test = ReadAll(config, DataPart::kTest);
  // With so few combinations each is met in both parts, and must have one probability.
  std::map<std::pair<uint64_t, uint64_t>, float> truth;
  for (int64_t e = 0; e < train.examples; ++e)
    truth[{train.groups[0].keys[2 * e], train.groups[0].keys[2 * e + 1]}] = train.truth[e];
  EXPECT_EQ(truth.size(), 9u);
  for (int64_t e = 0; e < test.examples; ++e)
    ASSERT_EQ((truth[{test.groups[0].keys[2 * e], test.groups[0].keys[2 * e + 1]}]), test.truth[e]);
  EXPECT_NE(std::vector<float>(train.labels.begin(), train.labels.begin() + test.examples),
            test.labels);
}

TEST(Synthetic, SeedChangesEverything) {
  DataConfig config = SmallConfig();
  const Batch one = ReadAll(config);
  config.synthetic.seed = 2;
  const Batch two = ReadAll(config);
  EXPECT_NE(one.groups[0].keys, two.groups[0].keys);
  EXPECT_NE(one.labels, two.labels);
  EXPECT_NE(one.dense, two.dense);
}

TEST(Synthetic, HitsTheLabelRateAndTheTruthIsCalibrated) {
  for (const double rate : {0.02, 0.25, 0.7}) {
    DataConfig config = SmallConfig();
    config.synthetic.label_rate = rate;
    config.synthetic.train_examples = 100'000;
    const Batch batch = ReadAll(config);
    const double error = std::sqrt(rate * (1 - rate) / 100'000);
    EXPECT_NEAR(Mean(batch.labels), rate, 6 * error);
    EXPECT_NEAR(Mean(batch.truth), Mean(batch.labels), 5 * error);
  }
}

// The scales hold whatever the shape: many slots or few, one value or many, any rank, any skew.
TEST(Synthetic, LogitHasTheStandardDeviationsOfTheConfig) {
  struct Shape {
    int64_t slots, values, factors, dense, features;
    double zipf;
  };
  for (const Shape& shape : {Shape{8, 1, 2, 0, 1000, 1.05}, Shape{3, 6, 1, 5, 50, 0.0},
                             Shape{40, 2, 12, 13, int64_t{1} << 40, 1.2}}) {
    DataConfig config = SmallConfig();
    SyntheticConfig& s = config.synthetic;
    s.slots = shape.slots;
    s.values_per_slot = shape.values;
    s.factors = shape.factors;
    s.dense = shape.dense;
    s.features = shape.features;
    s.zipf = shape.zipf;
    s.linear_scale = 0.7;
    s.interaction_scale = 0;
    EXPECT_NEAR(Deviation(Logits(ReadAll(config))), 0.7, 0.03);
    s.linear_scale = 0;
    s.interaction_scale = 1.3;
    EXPECT_NEAR(Deviation(Logits(ReadAll(config))), 1.3, 0.1);
  }
}

TEST(Synthetic, WithoutAHiddenModelEveryExampleHasTheLabelRate) {
  DataConfig config = SmallConfig();
  config.synthetic.linear_scale = 0;
  config.synthetic.interaction_scale = 0;
  config.synthetic.label_rate = 0.125;
  for (float p : ReadAll(config).truth) ASSERT_NEAR(p, 0.125, 1e-6);
}

TEST(Synthetic, DefaultsLeaveARealisticBestAuc) {
  DataConfig config;
  config.format = DataFormat::kSynthetic;
  config.synthetic.train_examples = 20'000;
  const Batch batch = ReadAll(config);
  // How often a click has a higher probability than a non-click, by the labels' definition.
  std::vector<std::pair<float, float>> order;
  for (int64_t e = 0; e < batch.examples; ++e) order.emplace_back(batch.truth[e], batch.labels[e]);
  std::sort(order.begin(), order.end());
  double below = 0, wins = 0, clicks = 0;
  for (const auto& [p, label] : order) {
    wins += label * below;
    clicks += label;
    below += 1 - label;
  }
  const double auc = wins / (clicks * below);
  EXPECT_GT(auc, 0.75);
  EXPECT_LT(auc, 0.88);
}

TEST(Synthetic, DrawsTheConfiguredNumberOfValuesASlot) {
  const Batch batch = ReadAll(SmallConfig());
  const std::vector<uint32_t>& offsets = batch.groups[0].offsets;
  std::vector<int64_t> sizes(7, 0);
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    const uint32_t size = offsets[b + 1] - offsets[b];
    ASSERT_GE(size, 1u);
    ASSERT_LE(size, 5u);
    ++sizes[size];
  }
  const double bags = static_cast<double>(offsets.size() - 1);
  for (int size = 1; size <= 5; ++size)
    EXPECT_NEAR(static_cast<double>(sizes[size]), bags / 5, 6 * std::sqrt(bags / 5));
}

TEST(Synthetic, RanksFollowThePowerLawInEverySlot) {
  DataConfig config = SmallConfig();
  config.synthetic.values_per_slot = 1;
  const Batch batch = ReadAll(config, DataPart::kTrain, SyntheticKeys::kValues);
  double sum = 0;
  for (int r = 1; r <= 500; ++r) sum += std::pow(r, -1.05);
  for (int slot = 0; slot < 4; ++slot) {
    std::vector<double> counts(500, 0);
    for (int64_t e = 0; e < batch.examples; ++e) {
      const uint64_t rank = batch.groups[0].keys[e * 4 + slot];
      ASSERT_LT(rank, 500u);
      ++counts[rank];
    }
    for (const int rank : {0, 1, 9}) {
      const double expected = std::pow(rank + 1, -1.05) / sum * 20'000;
      EXPECT_NEAR(counts[rank], expected, 6 * std::sqrt(expected));
    }
  }
}

TEST_P(SyntheticOrder, KeysAreTheHashedValuesOfTheSlot) {
  const DataConfig config = GetParam() ? StreamConfig() : SmallConfig();
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  const Batch keys = ReadAll(config);
  const Batch values = ReadAll(config, DataPart::kTrain, SyntheticKeys::kValues);
  EXPECT_EQ(keys.labels, values.labels);
  EXPECT_EQ(keys.truth, values.truth);
  const KeyGroup& group = keys.groups[0];
  ASSERT_EQ(group.offsets, values.groups[0].offsets);
  for (size_t bag = 0; bag + 1 < group.offsets.size(); ++bag)
    for (uint32_t i = group.offsets[bag]; i < group.offsets[bag + 1]; ++i)
      ASSERT_EQ(group.keys[i], IntegerKey(spec.slots[bag % 4].seed, values.groups[0].keys[i]));
}

// Streams that were made before must stay what they are: results refer to them.
TEST(Synthetic, IsWhatItWasInEarlierVersions) {
  const Batch batch = ReadAll(SmallConfig());
  uint64_t digest = 0;
  for (uint64_t key : batch.groups[0].keys) digest = RandomBits(digest, key);
  for (float p : batch.truth) digest = RandomBits(digest, std::bit_cast<uint32_t>(p));
  for (float y : batch.labels) digest = RandomBits(digest, std::bit_cast<uint32_t>(y));
  EXPECT_EQ(digest, 14146506481229518753u);
}

TEST(Synthetic, OneOffValuesAreTheConfiguredShareAndSeenOnce) {
  DataConfig config = SmallConfig();
  config.synthetic.one_off = 0.2;
  const Batch batch = ReadAll(config, DataPart::kTrain, SyntheticKeys::kValues);
  double fresh = 0;
  for (const auto& [value, count] : CountKeys(batch, 0, batch.examples)) {
    if (value < 500) continue;
    ASSERT_EQ(count, 1);
    ++fresh;
  }
  const double draws = static_cast<double>(batch.groups[0].keys.size());
  EXPECT_NEAR(fresh / draws, 0.2, 6 * std::sqrt(0.2 * 0.8 / draws));
  EXPECT_GT(fresh / static_cast<double>(CountKeys(batch, 0, batch.examples).size()), 0.9);
  // Test examples have others.
  const Batch test = ReadAll(config, DataPart::kTest, SyntheticKeys::kValues);
  const auto seen = CountKeys(batch, 0, batch.examples);
  for (const auto& [value, count] : CountKeys(test, 0, test.examples))
    ASSERT_TRUE(value < 500 || !seen.contains(value));
}

TEST(Synthetic, PopularValuesChangeWithDriftAndTheTestPartGoesOnFromTheEnd) {
  DataConfig config = SmallConfig();
  config.synthetic.drift = 8'000;
  config.synthetic.test_examples = 1'000;
  const Batch train = ReadAll(config);
  const Batch test = ReadAll(config, DataPart::kTest);
  const std::set<uint64_t> start = PopularKeys(train, 0, 1'000, 40);
  const std::set<uint64_t> next = PopularKeys(train, 1'000, 2'000, 40);
  const std::set<uint64_t> end = PopularKeys(train, 19'000, 20'000, 40);
  const std::set<uint64_t> tested = PopularKeys(test, 0, 1'000, 40);
  EXPECT_GT(Common(start, next), 20u);
  EXPECT_EQ(Common(start, end), 0u);
  EXPECT_EQ(Common(start, tested), 0u);
  EXPECT_GT(Common(end, tested), 20u);
}

TEST(Synthetic, DriftKeepsHowOftenEachRankIsDrawn) {
  DataConfig config = SmallConfig();
  config.synthetic.values_per_slot = 1;
  const Batch still = ReadAll(config, DataPart::kTrain, SyntheticKeys::kValues);
  config.synthetic.drift = int64_t{1} << 39;
  const Batch slow = ReadAll(config, DataPart::kTrain, SyntheticKeys::kValues);
  // Next to nothing drifts, so the ranks show: the draws are the same ones.
  EXPECT_EQ(still.groups[0].keys, slow.groups[0].keys);
}

TEST(Synthetic, StreamsHitTheLabelRateAndTheTruthIsCalibrated) {
  DataConfig config = StreamConfig();
  config.synthetic.train_examples = 100'000;
  config.synthetic.label_rate = 0.3;
  const Batch batch = ReadAll(config);
  const double error = std::sqrt(0.3 * 0.7 / 100'000);
  // The values of the moment are better or worse than those of the sample.
  EXPECT_NEAR(Mean(batch.labels), 0.3, 0.05);
  EXPECT_NEAR(Mean(batch.truth), Mean(batch.labels), 5 * error);
  EXPECT_GT(Deviation(batch.truth), 0.1);
}

TEST(Synthetic, SlotsGoToTheirTablesAndKeepTheirValues) {
  DataConfig config = SmallConfig();
  const Batch one_table = ReadAll(config);
  for (int j = 0; j < 4; ++j) {
    SlotConfig slot;
    slot.name = "s" + std::to_string(j);
    slot.table = j % 2 == 0 ? "even" : "odd";
    config.slots.push_back(slot);
  }
  const Batch two_tables = ReadAll(config);
  EXPECT_EQ(one_table.labels, two_tables.labels);
  ASSERT_EQ(two_tables.groups.size(), 2u);
  const auto bag = [](const Batch& b, int group, int64_t i) {
    const KeyGroup& g = b.groups[group];
    return std::vector<uint64_t>(g.keys.begin() + g.offsets[i], g.keys.begin() + g.offsets[i + 1]);
  };
  for (int64_t e = 0; e < 1000; ++e)
    for (int j = 0; j < 4; ++j)
      ASSERT_EQ(bag(one_table, 0, e * 4 + j), bag(two_tables, j % 2, e * 2 + j / 2));
}

TEST(Synthetic, DenseColumnsAreStandardNormalAndTransformed) {
  DataConfig config = SmallConfig();
  config.synthetic.train_examples = 50'000;
  config.dense.resize(2);
  config.dense[0].name = "d0";
  config.dense[1].name = "d1";
  config.dense[1].clip = {0, 1};
  const Batch batch = ReadAll(config);
  std::vector<float> plain, clipped;
  for (int64_t e = 0; e < batch.examples; ++e) {
    plain.push_back(batch.dense[2 * e]);
    clipped.push_back(batch.dense[2 * e + 1]);
  }
  EXPECT_NEAR(Mean(plain), 0, 0.02);
  EXPECT_NEAR(Deviation(plain), 1, 0.02);
  EXPECT_EQ(*std::min_element(clipped.begin(), clipped.end()), 0);
  EXPECT_EQ(*std::max_element(clipped.begin(), clipped.end()), 1);
}

}  // namespace
}  // namespace terrace
