#include "data/zipf.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace terrace {
namespace {

constexpr uint64_t kBinsPerOctave = 64;

// The integral of x^-s over [a, b], without cancellation for s near 1 or b near a.
double PowerIntegral(double a, double b, double s) {
  const double log_ratio = std::log1p((b - a) / a);
  const double t = (1 - s) * log_ratio;
  const double mean = std::abs(t) < 1e-12 ? 1.0 : std::expm1(t) / t;
  return std::pow(a, 1 - s) * log_ratio * mean;
}

// The sum of (r + 1)^-s over `ranks` ranks from `first` on: Euler and Maclaurin's formula around
// midpoints, whose next term is below 1e-10 of the sum where the ranks are not exact.
double PowerSum(uint64_t first, uint64_t ranks, double s) {
  if (ranks == 1) return std::pow(static_cast<double>(first) + 1, -s);
  const double a = static_cast<double>(first) + 0.5;
  const double b = a + static_cast<double>(ranks);
  return PowerIntegral(a, b, s) + s / 24 * (std::pow(b, -s - 1) - std::pow(a, -s - 1));
}

}  // namespace

ZipfSampler::ZipfSampler(uint64_t ranks, double exponent) {
  TERRACE_CHECK(ranks >= 1 && ranks <= kMaxRanks);
  TERRACE_CHECK(exponent >= 0 && exponent <= kMaxExponent);
  for (uint64_t first = 0; first < ranks; first += bins_.back().ranks) {
    const uint64_t width = first < kExactRanks ? 1 : std::bit_floor(first) / kBinsPerOctave;
    bins_.push_back({first, std::min(width, ranks - first)});
    mass_.push_back(PowerSum(first, bins_.back().ranks, exponent));
  }
  // From the smallest to the largest, for the sake of the last digits.
  double sum = 0;
  for (size_t b = mass_.size(); b-- > 0;) sum += mass_[b];
  for (double& m : mass_) m /= sum;
  BuildAliases();
}

// Vose's method: a bin with less than an even share is filled up by one with more.
void ZipfSampler::BuildAliases() {
  const size_t n = bins_.size();
  std::vector<double> share(n);
  std::vector<size_t> poor, rich;
  for (size_t b = 0; b < n; ++b) {
    share[b] = mass_[b] * static_cast<double>(n);
    (share[b] < 1 ? poor : rich).push_back(b);
  }
  choices_.resize(n);
  for (size_t b = 0; b < n; ++b)
    choices_[b] = {~uint64_t{0}, {static_cast<uint32_t>(b), static_cast<uint32_t>(b)}};
  while (!poor.empty() && !rich.empty()) {
    const size_t p = poor.back();
    const size_t r = rich.back();
    poor.pop_back();
    choices_[p].own_share = static_cast<uint64_t>(share[p] * 0x1p64);
    choices_[p].bin[1] = static_cast<uint32_t>(r);
    share[r] -= 1 - share[p];
    if (share[r] < 1) {
      rich.pop_back();
      poor.push_back(r);
    }
  }
}

double ZipfSampler::Probability(uint64_t rank) const {
  const auto after = std::upper_bound(bins_.begin(), bins_.end(), rank,
                                      [](uint64_t r, const Bin& bin) { return r < bin.first; });
  TERRACE_CHECK(after != bins_.begin());
  const Bin& bin = *(after - 1);
  TERRACE_CHECK(rank - bin.first < bin.ranks);
  return mass_[&bin - bins_.data()] / static_cast<double>(bin.ranks);
}

}  // namespace terrace
