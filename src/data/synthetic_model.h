// The hidden click model of synthetic data: a factorisation machine that nobody has to store.
//
// Every key has a linear weight and a vector of hidden factors, sliced from the bytes of a hash of
// (seed, key), so a model over 2^63 values costs no memory. Rare values differ less from the
// average: their weight and factors halve at ranks 32, 256 and 2048, or else most of the signal
// would lie in values that training data shows too seldom to learn. With w_j and f_j the means over
// the keys of slot j, and z_d the dense columns,
//
//     logit = bias + linear_scale * N(sum_j w_j, sum_d a_d z_d)
//                  + interaction_scale * N(sum_{i<j} <f_i, f_j>)
//
// where N scales to a standard deviation of 1 (and gives each slot and each dense column the same
// share). What that takes, and the bias for the label rate, is measured on a sample.
// A factorisation machine with pooling = "mean" can represent it.
//
// Constant once calibrated; any thread may use it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/data_config.h"

namespace terrace {

// The parts of an example's logit before they are scaled.
struct LogitParts {
  float slots = 0;  // linear
  float dense = 0;  // linear
  float pairwise = 0;
};

class HiddenModel {
 public:
  // The latents of a key are the bytes of so many hashes: the linear weight, then the factors.
  static constexpr int kLatentsPerWord = 8;

  HiddenModel(const SyntheticConfig& config, int64_t slots, int64_t dense_columns);

  // Sums of one example while its bags are added. One thread.
  class Example {
   public:
    explicit Example(const HiddenModel& model);
    // Forgets the previous example.
    void Start();
    // The keys of one slot, at least one, and their ranks by frequency.
    void AddBag(std::span<const uint64_t> keys, std::span<const uint64_t> ranks);
    void AddDense(int64_t column, float z) { dense_ += model_.dense_weights_[column] * z; }
    LogitParts Finish() const;

   private:
    // A vector of the latents of a word, of the compiler's own kind: whole operations on it need
    // no loop, and no detour through memory.
    typedef float Latents __attribute__((vector_size(kLatentsPerWord * sizeof(float))));
    struct LatentSums {
      Latents x;
      Latents squares;
    };
    void AddWord(uint64_t seed, std::span<const uint64_t> keys, std::span<const uint64_t> ranks,
                 LatentSums* sums) const;

    const HiddenModel& model_;
    float dense_ = 0;
    std::vector<LatentSums> sums_;  // [words]
  };

  // Chooses the scales and the bias so that `sample` has the config's standard deviations and label
  // rate.
  void Calibrate(std::span<const LogitParts> sample);

  // The click probability.
  float Probability(const LogitParts& parts) const;

 private:
  double Logit(const LogitParts& parts) const;  // without the bias

  const double slots_std_;
  const double dense_std_;
  const double pairwise_std_;
  const double label_rate_;
  const int64_t factors_;
  std::vector<uint64_t> word_seeds_;  // [words]
  std::vector<float> dense_weights_;  // [dense columns]

  // Set by Calibrate.
  double slots_scale_ = 0;
  double dense_scale_ = 0;
  double pairwise_scale_ = 0;
  double bias_ = 0;
};

}  // namespace terrace
