// Draws ranks by a bounded power law: rank r of [0, n) has probability ~ (r + 1)^-s.
//
// Ranks below kExactRanks are drawn exactly. The others lie in bins whose width is at most 1/64 of
// their first rank: a bin has exactly its share of the draws, which are uniform within it, so that
// a rank's probability is off by a factor of at most 1 +- s/100 (0.8 % for s = 1.05, 3.2 % for
// s = 4). An alias table picks the bin, hence a draw costs two table look-ups whatever n is.
//
// Constant after construction; any thread may draw.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace terrace {

class ZipfSampler {
 public:
  static constexpr uint64_t kExactRanks = 1024;
  static constexpr uint64_t kMaxRanks = (uint64_t{1} << 63) - 1;
  static constexpr double kMaxExponent = 10;

  // 1 <= ranks <= kMaxRanks; 0 <= exponent <= kMaxExponent (0: uniform).
  ZipfSampler(uint64_t ranks, double exponent);

  // A rank from two independent 64-bit random values.
  uint64_t Draw(uint64_t bin_bits, uint64_t rank_bits) const {
    const unsigned __int128 place = static_cast<unsigned __int128>(bin_bits) * choices_.size();
    const Choice& choice = choices_[static_cast<uint64_t>(place >> 64)];
    // By index, not by branch: it would be mispredicted every other time.
    const Bin& bin = bins_[choice.bin[static_cast<uint64_t>(place) >= choice.own_share]];
    return bin.first + BelowN(rank_bits, bin.ranks);
  }

  // The probability with which Draw returns `rank`.
  double Probability(uint64_t rank) const;

 private:
  struct Bin {
    uint64_t first;
    uint64_t ranks;
  };
  struct Choice {
    uint64_t own_share;  // of 2^64
    uint32_t bin[2];  // below own_share the bin of the same number as this choice; else its alias
  };

  void BuildAliases();

  std::vector<Bin> bins_;     // ascending
  std::vector<double> mass_;  // of each bin; they sum to 1
  std::vector<Choice> choices_;
};

}  // namespace terrace
