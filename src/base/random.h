// Random numbers by counter: a value is a pure function of what it is for, never of who asks when.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace terrace {

// A 64-bit random value for (seed, a, b). Inlined always: kernels of several levels call it.
[[gnu::always_inline]] constexpr uint64_t RandomBits(uint64_t seed, uint64_t a, uint64_t b = 0) {
  return Mix64(Mix64(Mix64(seed + 0x9e3779b97f4a7c15ULL) ^ a) + 0x9e3779b97f4a7c15ULL * (b + 1));
}

// [0, 1) from the upper bits of a 64-bit value: exact in a float / a double.
constexpr float UnitFloat(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }
constexpr double UnitDouble(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// [0, n) from a 64-bit value, by multiplication (bias below 2^-64 * n).
constexpr uint64_t BelowN(uint64_t bits, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

// A sequence: the i-th draw is RandomBits-quality and depends on (seed, stream, i) only.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t seed, uint64_t stream) : state_(RandomBits(seed, stream)) {}
  constexpr uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15ULL); }

 private:
  uint64_t state_;
};

}  // namespace terrace
