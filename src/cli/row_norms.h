// What many rows look like, in one pass and little memory.
#pragma once

#include <cstdint>
#include <vector>

#include "table/lifecycle.h"

namespace terrace {

// Quantiles of numbers >= 0. The least and the largest are exact, those between right to 1 %.
class NormHistogram {
 public:
  NormHistogram() : counts_(kBuckets) {}

  void Add(float norm);  // one that is not finite is counted apart
  int64_t count() const { return count_; }
  int64_t not_finite() const { return not_finite_; }
  float min() const { return min_; }
  float max() const { return max_; }
  // The smallest number that a share q of all does not exceed; 0 of none.
  float Quantile(double q) const;

 private:
  // By the upper bits of a float, which sort like their numbers: 7 of its fraction.
  static constexpr int kShift = 16;
  static constexpr size_t kBuckets = size_t{1} << (31 - kShift);

  std::vector<int64_t> counts_;
  int64_t count_ = 0, not_finite_ = 0;
  float min_ = 0, max_ = 0;
};

struct HotRow {
  uint64_t key = 0;
  float norm = 0;
  RowStats stats;
};

// The rows of the largest heat; of equal ones the smaller keys.
class HottestRows {
 public:
  explicit HottestRows(size_t limit) : limit_(limit) {}

  void Add(float heat, const HotRow& row);
  std::vector<HotRow> Sorted() const;  // hottest first

 private:
  struct Entry {
    float heat;
    HotRow row;
  };
  static bool Hotter(const Entry& a, const Entry& b) {
    return a.heat != b.heat ? a.heat > b.heat : a.row.key < b.row.key;
  }

  const size_t limit_;
  std::vector<Entry> heap_;  // the least hot one is first
};

// By 64-bit arithmetic.
float NormOf(const float* numbers, int64_t count);

}  // namespace terrace
