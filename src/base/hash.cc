#include "base/hash.h"

#include <xxhash.h>

namespace terrace {

uint64_t HashBytes(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

Hash128 HashBytes128(const void* data, size_t size, uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed);
  return Hash128{h.low64, h.high64};
}

}  // namespace terrace
