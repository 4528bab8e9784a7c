#include "data/features.h"

#include <algorithm>
#include <cmath>

namespace terrace {
namespace {

// Sets slot names apart from other uses of the hash. Part of every model ever trained: never
// change.
constexpr uint64_t kSlotNameSeed = 0x7465727261636531;

}  // namespace

uint64_t SlotSeed(std::string_view slot_name) { return HashBytes(slot_name, kSlotNameSeed); }

int64_t LogBucket(double x) {
  const double size = std::abs(x);
  if (x >= -2 && x <= 2) return -1 - (static_cast<int64_t>(std::floor(x)) + 2);
  const double root = std::log(size);
  const auto bucket = static_cast<int64_t>(root * root);  // < 503,800, as size is finite
  return x > 0 ? bucket : -6 - bucket;
}

int64_t BoundaryBucket(const std::vector<double>& boundaries, double x) {
  return std::upper_bound(boundaries.begin(), boundaries.end(), x) - boundaries.begin();
}

float DenseColumn::Transform(double x) const {
  if (config.log) {
    const double size = std::abs(x);
    // ln(1 + |x|) is exact enough and quicker where adding 1 loses nothing.
    x = std::copysign(size >= 1 ? std::log(1 + size) : std::log1p(size), x);
  }
  if (config.standardise) x = (x - mean) * inv_std;
  if (!config.clip.empty()) x = std::clamp(x, config.clip[0], config.clip[1]);
  return static_cast<float>(x);
}

}  // namespace terrace
