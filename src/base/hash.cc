#include "base/hash.h"

#include <xxhash.h>

#include <new>

#include "base/hash_kernels.h"

namespace terrace {
namespace {

constexpr size_t kLongInput = 512;  // below, there is little for vectors to do

}  // namespace

uint64_t HashBytes(const void* data, size_t size, uint64_t seed) {
  if (size >= kLongInput) return TERRACE_ISA_TABLE(kHashKernels).xxh3_64(data, size, seed);
  return XXH3_64bits_withSeed(data, size, seed);
}

Hash128 HashBytes128(const void* data, size_t size, uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed);
  return Hash128{h.low64, h.high64};
}

Hasher128::Hasher128(uint64_t seed) : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset_withSeed(static_cast<XXH3_state_t*>(state_), seed);
}

Hasher128::~Hasher128() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Hasher128::Add(std::string_view piece) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), piece.data(), piece.size());
}

Hash128 Hasher128::Result() const {
  const XXH128_hash_t h = XXH3_128bits_digest(static_cast<XXH3_state_t*>(state_));
  return Hash128{h.low64, h.high64};
}

}  // namespace terrace
