#include "data/synthetic_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace terrace {
namespace {

using Ids = std::vector<uint64_t>;

// The keys of a slot whose values have these ranks.
Ids Keys(uint64_t slot, const Ids& ranks) {
  Ids keys;
  for (uint64_t rank : ranks) keys.push_back(RandomBits(slot, rank));
  return keys;
}

LogitParts PartsOf(const HiddenModel& model, const std::vector<Ids>& ranks_of_slots) {
  HiddenModel::Example example(model);
  example.Start();
  for (size_t slot = 0; slot < ranks_of_slots.size(); ++slot)
    if (!ranks_of_slots[slot].empty())
      example.AddBag(Keys(slot, ranks_of_slots[slot]), ranks_of_slots[slot]);
  return example.Finish();
}

Ids RanksFrom(uint64_t first, uint64_t step, size_t count) {
  Ids ranks;
  for (size_t i = 0; i < count; ++i) ranks.push_back(first + step * i);
  return ranks;
}

// Bags longer than one 16-bit sum of bytes can hold, and latents of more than one word.
TEST(HiddenModel, PoolsTheMeanOfABag) {
  SyntheticConfig config;
  config.factors = 11;
  const HiddenModel model(config, 2, 0);
  const Ids first = RanksFrom(0, 3, 700);
  const Ids second = RanksFrom(1, 1000, 5);
  double linear = 0;
  double pairwise = 0;
  for (uint64_t a : first) {
    linear += PartsOf(model, {{a}}).slots / 700.0;
    for (uint64_t b : second) pairwise += PartsOf(model, {{a}, {b}}).pairwise / 3500.0;
  }
  for (uint64_t b : second) linear += PartsOf(model, {{}, {b}}).slots / 5.0;
  const LogitParts parts = PartsOf(model, {first, second});
  EXPECT_NEAR(parts.slots, linear, 1e-5);
  EXPECT_NEAR(parts.pairwise, pairwise, 1e-5);
}

TEST(HiddenModel, PairwisePartIsTheSumOverPairsOfSlots) {
  SyntheticConfig config;
  config.factors = 3;
  const HiddenModel model(config, 3, 0);
  const double together = PartsOf(model, {{4}, {5}, {6}}).pairwise;
  const double pairs = static_cast<double>(PartsOf(model, {{4}, {5}, {}}).pairwise) +
                       PartsOf(model, {{4}, {}, {6}}).pairwise +
                       PartsOf(model, {{}, {5}, {6}}).pairwise;
  EXPECT_NEAR(together, pairs, 1e-6);
  EXPECT_NE(together, 0);
}

TEST(HiddenModel, LatentsHalveAtTheDocumentedRanksAndKeepTheirMean) {
  const HiddenModel model(SyntheticConfig{}, 1, 0);
  const auto deviation = [&](uint64_t first, uint64_t last) {
    double sum = 0;
    double squares = 0;
    double n = 0;
    for (uint64_t slot = 0; slot < 4000; ++slot) {
      for (uint64_t rank : {first, last}) {
        HiddenModel::Example example(model);
        example.Start();
        example.AddBag(Keys(slot, {rank}), Ids{rank});
        const double x = example.Finish().slots;
        sum += x;
        squares += x * x;
        ++n;
      }
    }
    const double sigma = std::sqrt(squares / n);
    EXPECT_NEAR(sum / n, 0, 5 * sigma / std::sqrt(n));
    return sigma;
  };
  const double popular = deviation(0, 31);
  EXPECT_NEAR(popular, 1 / std::sqrt(3.0), 0.02);
  EXPECT_NEAR(deviation(32, 255) / popular, 0.5, 0.02);
  EXPECT_NEAR(deviation(256, 2047) / popular, 0.25, 0.01);
  EXPECT_NEAR(deviation(2048, ~uint64_t{0} >> 1) / popular, 0.125, 0.005);
}

TEST(HiddenModel, CalibratesTheSampleToTheConfig) {
  SyntheticConfig config;
  config.linear_scale = 1.5;
  config.interaction_scale = 0.5;
  config.label_rate = 0.1;
  HiddenModel model(config, 3, 1);
  std::vector<LogitParts> sample;
  RandomStream random(1, 2);
  for (int i = 0; i < 20'000; ++i)
    sample.push_back({3 + UnitFloat(random.Next()), 100 * UnitFloat(random.Next()),
                      -50 * UnitFloat(random.Next())});
  model.Calibrate(sample);
  double clicks = 0, mean = 0, squares = 0;
  for (const LogitParts& parts : sample) {
    const double p = model.Probability(parts);
    const double logit = std::log(p / (1 - p));
    clicks += p / 20'000;
    mean += logit / 20'000;
    squares += logit * logit / 20'000;
  }
  EXPECT_NEAR(clicks, 0.1, 1e-6);
  // Slots, dense and pairwise parts are independent here: their variances add up.
  EXPECT_NEAR(squares - mean * mean, 1.5 * 1.5 + 0.5 * 0.5, 0.05);
  const auto logit = [&](LogitParts parts) {
    const double p = model.Probability(parts);
    return std::log(p / (1 - p));
  };
  const double three_to_one =
      (logit({4, 0, 0}) - logit({3, 0, 0})) / (logit({3, 100, 0}) - logit({3, 0, 0}));
  EXPECT_NEAR(three_to_one, std::sqrt(3.0), 0.03);
}

}  // namespace
}  // namespace terrace
