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
  if (removed_ > 0) return CreateAt(keys, positions);
  const int64_t before = rows();
  index_.FindOrInsert(keys, positions);
  handed_ = rows();
  created_ += handed_ - before;
  for (int64_t p = before + 1; p <= rows(); ++p)
    InitRow(schema_, key(static_cast<uint32_t>(p)), base() + p * schema_.layout.stride);
}

// The same where rows have gone: positions need not be 1 ... rows().
void MemoryTier::CreateAt(std::span<const uint64_t> keys, std::span<uint32_t> positions) {
  index_.Find(keys, positions);
  new_keys_.clear();
  new_positions_.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (positions[i] != 0) continue;
    if (free_.empty()) {
      positions[i] = static_cast<uint32_t>(++handed_);
    } else {
      positions[i] = free_.back();
      free_.pop_back();
    }
    new_keys_.push_back(keys[i]);
    new_positions_.push_back(positions[i]);
  }
  Grow(handed_);
  created_ += static_cast<int64_t>(new_keys_.size());
  index_.Insert(new_keys_, new_positions_);
  for (size_t i = 0; i < new_keys_.size(); ++i)
    InitRow(schema_, new_keys_[i], base() + new_positions_[i] * schema_.layout.stride);
}

void MemoryTier::Remove(std::span<const uint32_t> positions) {
  if (positions.empty()) return;
  removed_ += static_cast<int64_t>(positions.size());
  index_.Erase(positions);
  free_.insert(free_.end(), positions.begin(), positions.end());
}

std::vector<bool> MemoryTier::Free() const {
  std::vector<bool> free(static_cast<size_t>(handed_) + 1);
  free[0] = true;
  for (uint32_t position : free_) free[position] = true;
  return free;
}

void MemoryTier::Find(std::span<const uint64_t> keys, std::span<uint32_t> positions) const {
  index_.Find(keys, positions);
}

}  // namespace terrace
