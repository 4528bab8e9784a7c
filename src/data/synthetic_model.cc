#include "data/synthetic_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr float kByteMean = 127.5f;
constexpr uint64_t kEvenBytes = 0x00ff00ff00ff00ffULL;
// Eight sums of bytes, as two words or one by one.
typedef uint64_t Halves __attribute__((vector_size(16)));
typedef uint16_t ByteSums __attribute__((vector_size(16)));
// So many bytes fit a 16-bit sum.
constexpr size_t kMaxPartialSum = 256;

// What the random values of the model are for.
enum Purpose : uint64_t { kLatentWord = 0x6c6174656e74, kDenseWeight = 0x64656e7365 };

// How the bytes of a hash shrink towards the mean of a byte as ranks grow; the mean stays exact.
struct Shrinkage {
  uint64_t halvings;
  uint64_t kept;   // bits of the shifted word
  uint64_t shift;  // added to each byte
};

// By the bit width of the rank. A table, as a branch on the rank would be mispredicted.
constexpr std::array<Shrinkage, 65> kShrinkage = [] {
  constexpr uint64_t kEveryByte = 0x0101010101010101ULL;
  std::array<Shrinkage, 65> table{};
  for (int width = 0; width <= 64; ++width) {
    const int halvings = width < 6 ? 0 : width < 9 ? 1 : width < 12 ? 2 : 3;
    table[width] = {static_cast<uint64_t>(halvings), kEveryByte * (0xff >> halvings),
                    kEveryByte * (128 - (128 >> halvings))};
  }
  return table;
}();

uint64_t Shrink(uint64_t bits, uint64_t rank) {
  const Shrinkage& s = kShrinkage[std::bit_width(rank)];
  return (bits >> s.halvings & s.kept) + s.shift;
}

// What scales a part of the logit to the standard deviation `wanted`; 0 for one that is constant.
double ScaleTo(double wanted, std::span<const LogitParts> sample, float LogitParts::*part) {
  const double n = static_cast<double>(sample.size());
  double mean = 0;
  for (const LogitParts& p : sample) mean += p.*part / n;
  double variance = 0;
  for (const LogitParts& p : sample) variance += (p.*part - mean) * (p.*part - mean) / n;
  return variance > 1e-12 ? wanted / std::sqrt(variance) : 0;
}

// The share of the linear part's standard deviation that `columns` of all columns have.
double LinearShare(int64_t columns, int64_t all) {
  return std::sqrt(static_cast<double>(columns) / static_cast<double>(std::max<int64_t>(all, 1)));
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

HiddenModel::HiddenModel(const SyntheticConfig& config, int64_t slots, int64_t dense_columns)
    : slots_std_(config.linear_scale * LinearShare(slots, slots + dense_columns)),
      dense_std_(config.linear_scale * LinearShare(dense_columns, slots + dense_columns)),
      pairwise_std_(config.interaction_scale),
      label_rate_(config.label_rate),
      factors_(config.factors) {
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  const int64_t words = (1 + factors_ + kLatentsPerWord - 1) / kLatentsPerWord;
  for (int64_t w = 0; w < words; ++w) word_seeds_.push_back(RandomBits(seed, kLatentWord, w));
  for (int64_t d = 0; d < dense_columns; ++d)
    dense_weights_.push_back(UnitFloat(RandomBits(seed, kDenseWeight, d)) - 0.5f);
}

HiddenModel::Example::Example(const HiddenModel& model)
    : model_(model), sums_(model.word_seeds_.size()) {}

void HiddenModel::Example::Start() {
  dense_ = 0;
  std::fill(sums_.begin(), sums_.end(), LatentSums{});
}

void HiddenModel::Example::AddBag(std::span<const uint64_t> keys, std::span<const uint64_t> ranks) {
  for (size_t w = 0; w < sums_.size(); ++w) AddWord(model_.word_seeds_[w], keys, ranks, &sums_[w]);
}

void HiddenModel::Example::AddWord(uint64_t seed, std::span<const uint64_t> keys,
                                   std::span<const uint64_t> ranks, LatentSums* sums) const {
  Latents bag = {};
  for (size_t i = 0; i < keys.size();) {
    // Eight bytes are added at a time, as two words of four 16-bit sums.
    const size_t end = std::min(keys.size(), i + kMaxPartialSum);
    Halves halves = {0, 0};
    for (; i < end; ++i) {
      const uint64_t bits = Shrink(Mix64(keys[i] ^ seed), ranks[i]);
      halves += Halves{bits & kEvenBytes, (bits >> 8) & kEvenBytes};
    }
    bag += __builtin_convertvector(reinterpret_cast<ByteSums>(halves), Latents);
  }
  const float scale = 1 / (kByteMean * static_cast<float>(keys.size()));
  const Latents x = bag * scale - 1;  // in [-1, 1]
  sums->x += x;
  sums->squares += x * x;
}

LogitParts HiddenModel::Example::Finish() const {
  // Twice the sum of the products of pairs is the square of the sum less the sum of the squares.
  float pairwise = 0;
  for (int64_t f = 1; f <= model_.factors_; ++f) {
    const LatentSums& sums = sums_[f / kLatentsPerWord];
    const float x = sums.x[f % kLatentsPerWord];
    pairwise += x * x - sums.squares[f % kLatentsPerWord];
  }
  return {sums_[0].x[0], dense_, 0.5f * pairwise};
}

void HiddenModel::Calibrate(std::span<const LogitParts> sample) {
  TERRACE_CHECK(!sample.empty());
  slots_scale_ = ScaleTo(slots_std_, sample, &LogitParts::slots);
  dense_scale_ = ScaleTo(dense_std_, sample, &LogitParts::dense);
  pairwise_scale_ = ScaleTo(pairwise_std_, sample, &LogitParts::pairwise);

  std::vector<double> logits;
  for (const LogitParts& parts : sample) logits.push_back(Logit(parts));
  // The mean probability grows with the bias: halve the interval that holds the right one.
  const auto [lowest, highest] = std::minmax_element(logits.begin(), logits.end());
  const double target = std::log(label_rate_ / (1 - label_rate_));
  double low = target - *highest;
  double high = target - *lowest;
  for (int i = 0; i < 40; ++i) {
    bias_ = 0.5 * (low + high);
    double clicks = 0;
    for (double logit : logits) clicks += Sigmoid(logit + bias_);
    (clicks < label_rate_ * static_cast<double>(logits.size()) ? low : high) = bias_;
  }
}

double HiddenModel::Logit(const LogitParts& parts) const {
  return slots_scale_ * parts.slots + dense_scale_ * parts.dense + pairwise_scale_ * parts.pairwise;
}

float HiddenModel::Probability(const LogitParts& parts) const {
  return static_cast<float>(Sigmoid(Logit(parts) + bias_));
}

}  // namespace terrace
