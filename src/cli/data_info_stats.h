// What `terrace data info` learns from a pass over the examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/data_info_counter.h"
#include "data/batch.h"
#include "data/features.h"

namespace terrace {

// What an empty cell of a dense column must become (DenseConfig::missing) to be counted as missing.
inline constexpr float kMissingMark = 3.0e38f;

struct SlotStats {
  SlotStats(const std::string& n, int64_t max_exact) : name(n), keys(max_exact) {}
  std::string name;
  int64_t missing = 0;  // examples without a value
  KeyCounter keys;      // without the key of an empty cell
};

struct DenseStats {
  std::string name;
  int64_t count = 0;  // without missing ones
  int64_t missing = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double squares = 0;  // sum of squared differences from the mean

  void Add(double x);
  double Deviation() const;
};

// One thread.
class DataStats {
 public:
  explicit DataStats(const FeatureSpec& spec);
  void Add(const Batch& batch);

  int64_t examples() const { return examples_; }
  double label_rate() const;
  const std::vector<SlotStats>& slots() const { return slots_; }
  const std::vector<DenseStats>& dense() const { return dense_; }

 private:
  const FeatureSpec& spec_;
  int64_t examples_ = 0;
  double label_sum_ = 0;
  std::vector<SlotStats> slots_;
  std::vector<DenseStats> dense_;
};

// The exponent s of count ~ rank^-s, fitted by least squares to the logarithms at ranks 1, 1.4, 2,
// 2.8, 4 ... down to where counts are too small to tell. NaN if there are too few of them.
double FitZipfExponent(const std::vector<int64_t>& sorted_counts);

}  // namespace terrace
