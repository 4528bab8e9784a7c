// Hashing: XXH3 for bytes, a bijective mix for integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace terrace {

// XXH3_64bits with seed.
uint64_t HashBytes(const void* data, size_t size, uint64_t seed);
inline uint64_t HashBytes(std::string_view s, uint64_t seed) {
  return HashBytes(s.data(), s.size(), seed);
}

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};
// XXH3_128bits with seed.
Hash128 HashBytes128(const void* data, size_t size, uint64_t seed);

// The same of bytes that come in pieces.
class Hasher128 {
 public:
  explicit Hasher128(uint64_t seed);
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;

  void Add(std::string_view piece);
  Hash128 Result() const;

 private:
  void* state_;
};

// A bijection of 64-bit integers whose output bits all depend on all input bits (the finaliser of
// splitmix64). Distinct inputs never collide.
[[gnu::always_inline]] constexpr uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

// The inverse: Unmix64(Mix64(x)) == x.
constexpr uint64_t Unmix64(uint64_t x) {
  x ^= x >> 31 ^ x >> 62;
  x *= 0x319642b2d24d8ec3ULL;
  x ^= x >> 27 ^ x >> 54;
  x *= 0x96de1b173f119089ULL;
  x ^= x >> 30 ^ x >> 60;
  return x;
}

}  // namespace terrace
