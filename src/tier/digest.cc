#include "tier/digest.h"

namespace terrace {

Hash128 RowsDigest(const MemoryTier& tier) {
  const uint64_t seed = HashBytes(tier.schema().name, 0);
  const int64_t bytes = RowLayout::kKeyBytes + tier.schema().layout.payload_bytes();
  unsigned __int128 sum = 0;  // a sum of hashes: any order gives the same
  for (int64_t p = 1; p <= tier.rows(); ++p) {
    const std::byte* const record = tier.row(static_cast<uint32_t>(p)) - RowLayout::kKeyBytes;
    const Hash128 hash = HashBytes128(record, static_cast<size_t>(bytes), seed);
    sum += static_cast<unsigned __int128>(hash.high) << 64 | hash.low;
  }
  return {static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 64)};
}

}  // namespace terrace
