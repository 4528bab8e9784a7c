#include "data/zipf.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

namespace terrace {
namespace {

constexpr uint64_t kHuge = ZipfSampler::kMaxRanks;

std::vector<double> ExactProbabilities(uint64_t n, double s) {
  std::vector<double> p(n);
  double sum = 0;
  for (uint64_t r = n; r-- > 0;) sum += p[r] = std::pow(static_cast<double>(r + 1), -s);
  for (double& x : p) x /= sum;
  return p;
}

class Draws {
 public:
  Draws(const ZipfSampler& zipf, uint64_t stream) : zipf_(zipf), random_(42, stream) {}
  uint64_t Next() {
    const uint64_t bin_bits = random_.Next();
    return zipf_.Draw(bin_bits, random_.Next());
  }

 private:
  const ZipfSampler& zipf_;
  RandomStream random_;
};

// Pearson's statistic in units of its standard deviation: about N(0, 1) if the draws follow p.
double ChiSquareDeviation(const std::vector<int64_t>& counts, const std::vector<double>& p,
                          int64_t draws) {
  double statistic = 0;
  double cells = 0;
  double rest_count = 0;  // cells too small for the statistic are taken together
  double rest_expected = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * static_cast<double>(draws);
    if (expected < 10) {
      rest_count += static_cast<double>(counts[i]);
      rest_expected += expected;
      continue;
    }
    const double d = static_cast<double>(counts[i]) - expected;
    statistic += d * d / expected;
    ++cells;
  }
  if (rest_expected > 10) {
    statistic += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
    ++cells;
  }
  return (statistic - (cells - 1)) / std::sqrt(2 * std::max(cells - 1, 1.0));
}

TEST(Zipf, DrawsSmallRangesByTheirExactProbabilities) {
  constexpr int64_t kDraws = 400'000;
  for (const uint64_t n : {uint64_t{2}, uint64_t{50}, ZipfSampler::kExactRanks}) {
    for (const double s : {0.0, 0.7, 1.0, 1.05, 2.0, 4.0}) {
      const ZipfSampler zipf(n, s);
      std::vector<int64_t> counts(n, 0);
      Draws draws(zipf, n);
      for (int64_t i = 0; i < kDraws; ++i) {
        const uint64_t rank = draws.Next();
        ASSERT_LT(rank, n);
        ++counts[rank];
      }
      EXPECT_LT(std::abs(ChiSquareDeviation(counts, ExactProbabilities(n, s), kDraws)), 5)
          << "n = " << n << ", s = " << s;
    }
  }
}

TEST(Zipf, AlwaysDrawsTheOnlyRank) {
  const ZipfSampler zipf(1, 1.05);
  Draws draws(zipf, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(draws.Next(), 0u);
  EXPECT_EQ(zipf.Probability(0), 1.0);
}

TEST(Zipf, ProbabilitiesOfAMediumRangeAreWithinTheStatedBound) {
  constexpr uint64_t n = 300'000;
  for (const double s : {0.0, 0.5, 1.0, 1.05, 2.0, 4.0, 10.0}) {
    const ZipfSampler zipf(n, s);
    const std::vector<double> exact = ExactProbabilities(n, s);
    double sum = 0;
    for (uint64_t r = 0; r < n; ++r) {
      const double p = zipf.Probability(r);
      sum += p;
      const double bound = r < ZipfSampler::kExactRanks ? 1e-9 : s / 100 + 1e-9;
      ASSERT_NEAR(p / exact[r], 1, bound) << "rank " << r << ", s = " << s;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(Zipf, DrawsFollowTheProbabilitiesAcrossBins) {
  constexpr uint64_t n = 20'000;
  constexpr int64_t kDraws = 2'000'000;
  for (const double s : {0.0, 1.05}) {
    const ZipfSampler zipf(n, s);
    std::vector<int64_t> counts(n, 0);
    std::vector<double> p(n);
    for (uint64_t r = 0; r < n; ++r) p[r] = zipf.Probability(r);
    Draws draws(zipf, 3);
    for (int64_t i = 0; i < kDraws; ++i) ++counts[draws.Next()];
    EXPECT_LT(std::abs(ChiSquareDeviation(counts, p, kDraws)), 5) << "s = " << s;
  }
}

// The mass of ranks in [2^k, 2^(k+1)) for s = 1 is ln 2 of a total of ln n + gamma.
TEST(Zipf, SpreadsHugeRangesEvenlyOverOctavesForExponentOne) {
  const ZipfSampler zipf(kHuge, 1.0);
  constexpr int64_t kDraws = 1'000'000;
  std::vector<int64_t> octaves(64, 0);
  Draws draws(zipf, 9);
  for (int64_t i = 0; i < kDraws; ++i) ++octaves[std::bit_width(draws.Next() + 1) - 1];
  const double total = std::log(static_cast<double>(kHuge)) + 0.57721566490153286;
  for (int k = 8; k < 63; ++k) {
    const double expected = std::log(2.0) / total * kDraws;
    EXPECT_NEAR(static_cast<double>(octaves[k]), expected, 6 * std::sqrt(expected)) << k;
  }
}

TEST(Zipf, UniformDrawsReachEveryPartOfAHugeRange) {
  const ZipfSampler zipf(kHuge, 0.0);
  constexpr int kDraws = 100'000;
  double mean = 0;
  double square = 0;
  Draws draws(zipf, 11);
  uint64_t odd = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t rank = draws.Next();
    ASSERT_LT(rank, kHuge);
    const double u = static_cast<double>(rank) / static_cast<double>(kHuge);
    mean += u / kDraws;
    square += u * u / kDraws;
    odd += rank & 1;
  }
  EXPECT_NEAR(mean, 1.0 / 2, 0.005);
  EXPECT_NEAR(square, 1.0 / 3, 0.005);
  EXPECT_NEAR(static_cast<double>(odd), kDraws / 2.0, 1000);
}

TEST(Zipf, AnyParametersGiveRanksInRangeAndDecreasingProbabilities) {
  EXPECT_TRUE(rc::check([] {
    const int bits = *rc::gen::inRange(1, 64);
    const uint64_t n = std::max<uint64_t>(1, *rc::gen::arbitrary<uint64_t>() >> (64 - bits));
    const double s = *rc::gen::inRange(0, 401) / 100.0;
    const ZipfSampler zipf(n, s);
    Draws draws(zipf, n);
    double last = 2;
    std::vector<uint64_t> ranks;
    for (int i = 0; i < 200; ++i) ranks.push_back(draws.Next());
    std::sort(ranks.begin(), ranks.end());
    RC_ASSERT(ranks.back() < n);
    for (const uint64_t rank : ranks) {
      const double p = zipf.Probability(rank);
      RC_ASSERT(p > 0);
      RC_ASSERT(p <= last * (1 + 1e-12));
      last = p;
    }
  }));
}

}  // namespace
}  // namespace terrace
