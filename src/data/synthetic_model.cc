#include "data/synthetic_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr float kByteMean = 127.5f;
constexpr double kByteVariance = (256.0 * 256.0 - 1) / 12;
constexpr uint64_t kEvenBytes = 0x00ff00ff00ff00ffULL;
// So many bytes fit a 16-bit sum.
constexpr size_t kMaxPartialSum = 256;

// What the random values of the model are for.
enum Purpose : uint64_t { kLatentWord = 0x6c6174656e74, kDenseWeight = 0x64656e7365 };

constexpr uint64_t kEveryByte = 0x0101010101010101ULL;

// Shrinks each byte of `bits` towards the mean of a byte, by 1/2 for each of the ranks at which
// latents halve. The mean itself stays exact.
uint64_t Shrink(uint64_t bits, uint64_t rank) {
  const int halvings = std::min(3, (static_cast<int>(std::bit_width(rank >> 5)) + 2) / 3);
  return (bits >> halvings & kEveryByte * (0xff >> halvings)) +
         kEveryByte * (128 - (128 >> halvings));
}

double Mean(std::span<const double> v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

// 1 / standard deviation, or 0 for what does not vary.
double InverseDeviation(std::span<const double> v) {
  const double mean = Mean(v);
  double sum = 0;
  for (double x : v) sum += (x - mean) * (x - mean);
  const double variance = sum / static_cast<double>(v.size());
  return variance > 1e-12 ? 1 / std::sqrt(variance) : 0;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

HiddenModel::HiddenModel(const SyntheticConfig& config, int64_t dense_columns)
    : linear_std_(config.linear_scale),
      pairwise_std_(config.interaction_scale),
      label_rate_(config.label_rate),
      factors_(config.factors) {
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  const int64_t words = (1 + factors_ + kLatentsPerWord - 1) / kLatentsPerWord;
  for (int64_t w = 0; w < words; ++w) word_seeds_.push_back(RandomBits(seed, kLatentWord, w));
  for (int64_t d = 0; d < dense_columns; ++d) {
    const double uniform = UnitDouble(RandomBits(seed, kDenseWeight, d)) - 0.5;
    dense_weights_.push_back(static_cast<float>(uniform * std::sqrt(12.0)));
  }
  // A mean over m keys has 1/m of the variance of one key, and m is uniform in [1, max_keys].
  const int64_t max_keys = 2 * config.values_per_slot - 1;
  double mean_inverse = 0;
  for (int64_t m = 1; m <= max_keys; ++m) mean_inverse += 1.0 / static_cast<double>(m * max_keys);
  bag_scales_.push_back(0);
  for (int64_t m = 1; m <= max_keys; ++m)
    bag_scales_.push_back(static_cast<float>(1 / (m * std::sqrt(kByteVariance * mean_inverse))));
}

HiddenModel::Example::Example(const HiddenModel& model)
    : model_(model),
      sums_(model.word_seeds_.size() * kLatentsPerWord),
      squares_(model.word_seeds_.size() * kLatentsPerWord) {}

void HiddenModel::Example::Start() {
  dense_ = 0;
  std::fill(sums_.begin(), sums_.end(), 0.0f);
  std::fill(squares_.begin(), squares_.end(), 0.0f);
}

void HiddenModel::Example::AddBag(std::span<const uint64_t> keys, std::span<const uint64_t> ranks) {
  const float scale = model_.bag_scales_[keys.size()];
  const float mean = kByteMean * static_cast<float>(keys.size());
  float* sums = sums_.data();
  float* squares = squares_.data();
  for (const uint64_t seed : model_.word_seeds_) {
    float bag[kLatentsPerWord] = {};
    for (size_t i = 0; i < keys.size();) {
      // Eight bytes are added at a time, as two words of four 16-bit sums.
      const size_t end = std::min(keys.size(), i + kMaxPartialSum);
      uint64_t halves[2] = {0, 0};
      for (; i < end; ++i) {
        const uint64_t bits = Shrink(Mix64(keys[i] ^ seed), ranks[i]);
        halves[0] += bits & kEvenBytes;
        halves[1] += (bits >> 8) & kEvenBytes;
      }
      uint16_t bytes[kLatentsPerWord];
      std::memcpy(bytes, halves, sizeof(bytes));
      for (int l = 0; l < kLatentsPerWord; ++l) bag[l] += static_cast<float>(bytes[l]);
    }
    for (int l = 0; l < kLatentsPerWord; ++l) {
      const float x = (bag[l] - mean) * scale;
      sums[l] += x;
      squares[l] += x * x;
    }
    sums += kLatentsPerWord;
    squares += kLatentsPerWord;
  }
}

LogitParts HiddenModel::Example::Finish() const {
  // Twice the sum of the products of pairs is the square of the sum less the sum of the squares.
  float pairwise = 0;
  for (int64_t f = 1; f <= model_.factors_; ++f) pairwise += sums_[f] * sums_[f] - squares_[f];
  return {sums_[0] + dense_, 0.5f * pairwise};
}

void HiddenModel::Calibrate(std::span<const LogitParts> sample) {
  TERRACE_CHECK(!sample.empty());
  std::vector<double> linear, pairwise;
  for (const LogitParts& p : sample) {
    linear.push_back(p.linear);
    pairwise.push_back(p.pairwise);
  }
  linear_scale_ = linear_std_ * InverseDeviation(linear);
  pairwise_scale_ = pairwise_std_ * InverseDeviation(pairwise);

  std::vector<double> logits(sample.size());
  for (size_t i = 0; i < sample.size(); ++i)
    logits[i] = linear_scale_ * linear[i] + pairwise_scale_ * pairwise[i];
  // The mean probability grows with the bias.
  const auto [lowest, highest] = std::minmax_element(logits.begin(), logits.end());
  const double target = std::log(label_rate_ / (1 - label_rate_));
  double low = target - *highest;
  double high = target - *lowest;
  std::vector<double> probabilities(sample.size());
  for (int i = 0; i < 40; ++i) {
    bias_ = 0.5 * (low + high);
    for (size_t e = 0; e < logits.size(); ++e) probabilities[e] = Sigmoid(logits[e] + bias_);
    (Mean(probabilities) < label_rate_ ? low : high) = bias_;
  }
}

float HiddenModel::Probability(LogitParts parts) const {
  return static_cast<float>(
      Sigmoid(bias_ + linear_scale_ * parts.linear + pairwise_scale_ * parts.pairwise));
}

}  // namespace terrace
