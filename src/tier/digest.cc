#include "tier/digest.h"

#include <cstring>
#include <vector>

namespace terrace {

Hash128 RowsDigest(const MemoryTier& tier) {
  const uint64_t seed = HashBytes(tier.schema().name, 0);
  const auto payload = static_cast<size_t>(tier.schema().layout.payload_bytes());
  std::vector<std::byte> record(sizeof(uint64_t) + payload);
  unsigned __int128 sum = 0;  // a sum of hashes: any order gives the same
  for (int64_t p = 1; p <= tier.rows(); ++p) {
    const auto position = static_cast<uint32_t>(p);
    const uint64_t key = tier.key(position);
    std::memcpy(record.data(), &key, sizeof(key));
    std::memcpy(record.data() + sizeof(key), tier.row(position), payload);
    const Hash128 hash = HashBytes128(record.data(), record.size(), seed);
    sum += static_cast<unsigned __int128>(hash.high) << 64 | hash.low;
  }
  return {static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 64)};
}

}  // namespace terrace
