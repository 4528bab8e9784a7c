#include "tier/memory_tier.h"

#include <fmt/format.h>

#include <limits>

namespace terrace {

MemoryTier::MemoryTier(const TableSchema& schema)
    : schema_(schema),
      arena_(fmt::format("table '{}': rows", schema.name),
             (int64_t{std::numeric_limits<uint32_t>::max()} + 1) * schema.layout.stride),
      index_(fmt::format("table '{}'", schema.name), &arena_, schema.layout.stride) {
  arena_.Grow(schema_.layout.stride);  // the default row
}

void MemoryTier::FindOrCreate(std::span<const uint64_t> keys, std::span<uint32_t> positions) {
  const int64_t before = rows();
  index_.FindOrInsert(keys, positions);
  for (int64_t p = before + 1; p <= rows(); ++p)
    InitRow(schema_, key(static_cast<uint32_t>(p)), base() + p * schema_.layout.stride);
}

void MemoryTier::Find(std::span<const uint64_t> keys, std::span<uint32_t> positions) const {
  index_.Find(keys, positions);
}

}  // namespace terrace
