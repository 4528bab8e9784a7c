#include "cli/data_info_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace terrace {
namespace {

// Keys that are counted one by one: of all slots together, and the bounds for one slot. A key takes
// at most 64 bytes.
constexpr int64_t kExactKeys = 8'000'000;
constexpr int64_t kMinExactKeys = 20'000;
constexpr int64_t kMaxExactKeys = 2'000'000;

// A frequency below this is mostly noise.
constexpr int64_t kMinFitCount = 5;
constexpr int kMinFitPoints = 5;

}  // namespace

void DenseStats::Add(double x) {
  if (count == 0) min = max = x;
  min = std::min(min, x);
  max = std::max(max, x);
  ++count;
  const double from_old_mean = x - mean;
  mean += from_old_mean / static_cast<double>(count);
  squares += from_old_mean * (x - mean);
}

double DenseStats::Deviation() const {
  return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
}

DataStats::DataStats(const FeatureSpec& spec) : spec_(spec) {
  const int64_t slots = static_cast<int64_t>(spec.slots.size());
  const int64_t max_exact =
      std::clamp(kExactKeys / std::max<int64_t>(slots, 1), kMinExactKeys, kMaxExactKeys);
  for (const Slot& slot : spec.slots) slots_.emplace_back(slot.config.name, max_exact);
  for (const DenseColumn& column : spec.dense) dense_.emplace_back().name = column.config.name;
}

void DataStats::Add(const Batch& batch) {
  examples_ += batch.examples;
  for (float label : batch.labels) label_sum_ += label;
  // Slot by slot: its counter stays in the cache.
  for (size_t j = 0; j < slots_.size(); ++j) {
    const Slot& slot = spec_.slots[j];
    const KeyGroup& group = batch.groups[static_cast<size_t>(slot.group)];
    SlotStats& stats = slots_[j];
    for (int64_t e = 0; e < batch.examples; ++e) {
      const uint32_t* bag = group.offsets.data() + e * group.slots + slot.index_in_group;
      bool found = false;
      for (uint32_t i = bag[0]; i < bag[1]; ++i) {
        if (group.keys[i] == slot.missing_key) continue;
        stats.keys.Add(group.keys[i]);
        found = true;
      }
      if (!found) ++stats.missing;
    }
  }
  for (size_t d = 0; d < dense_.size(); ++d) {
    for (int64_t e = 0; e < batch.examples; ++e) {
      const float x = batch.dense[static_cast<size_t>(e * batch.dense_columns) + d];
      if (x == kMissingMark) {
        ++dense_[d].missing;
      } else {
        dense_[d].Add(x);
      }
    }
  }
}

double DataStats::label_rate() const { return label_sum_ / static_cast<double>(examples_); }

double FitZipfExponent(const std::vector<int64_t>& sorted_counts) {
  std::vector<std::pair<double, double>> points;
  for (double place = 1; place <= static_cast<double>(sorted_counts.size());
       place *= std::sqrt(2.0)) {
    const double rank = std::round(place);
    const int64_t count = sorted_counts[static_cast<size_t>(rank) - 1];
    if (count < kMinFitCount) break;
    if (points.empty() || std::log(rank) > points.back().first)
      points.emplace_back(std::log(rank), std::log(static_cast<double>(count)));
  }
  const double n = static_cast<double>(points.size());
  if (points.size() < kMinFitPoints) return std::numeric_limits<double>::quiet_NaN();
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const auto& [x, y] : points) {
    mean_x += x / n;
    mean_y += y / n;
  }
  for (const auto& [x, y] : points) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  return -xy / xx;
}

}  // namespace terrace
