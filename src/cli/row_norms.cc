#include "cli/row_norms.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace terrace {

void NormHistogram::Add(float norm) {
  if (!std::isfinite(norm)) {
    ++not_finite_;
    return;
  }
  min_ = count_ == 0 ? norm : std::min(min_, norm);
  max_ = count_ == 0 ? norm : std::max(max_, norm);
  ++count_;
  ++counts_[std::bit_cast<uint32_t>(norm) >> kShift];
}

float NormHistogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<int64_t>(std::ceil(q * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t b = 0; b < kBuckets; ++b) {
    seen += counts_[b];
    if (seen < rank || counts_[b] == 0) continue;
    const uint32_t middle = static_cast<uint32_t>(b) << kShift | 1u << (kShift - 1);
    return std::clamp(std::bit_cast<float>(middle), min_, max_);
  }
  return max_;
}

void HottestRows::Add(float heat, const HotRow& row) {
  const Entry entry{heat, row};
  if (limit_ == 0 || std::isnan(heat)) return;
  if (heap_.size() == limit_) {
    if (!Hotter(entry, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), Hotter);
    heap_.pop_back();
  }
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), Hotter);
}

std::vector<HotRow> HottestRows::Sorted() const {
  std::vector<Entry> entries = heap_;
  std::sort(entries.begin(), entries.end(), Hotter);
  std::vector<HotRow> rows;
  for (const Entry& entry : entries) rows.push_back(entry.row);
  return rows;
}

float NormOf(const float* numbers, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double{numbers[i]} * numbers[i];
  return static_cast<float>(std::sqrt(sum));
}

}  // namespace terrace
