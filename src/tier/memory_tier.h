// Rows of one table in memory: an arena of fixed-size rows and an index from key to position.
//
// Position 0 is the default row, all zero. The arena is one reserved range of addresses: rows never
// move. Either FindOrCreate hands out positions, in the order keys are first seen and again where
// Remove made them free; or the caller decides which row is where, by Grow, Insert and Erase
// (tiered_table.h).
// Threads: one thread calls the non-const functions; others may at the same time read and write
// rows at positions they were handed. Throws Error when memory runs out; the tier must not be used
// then.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "table/schema.h"
#include "tier/key_index.h"
#include "tier/row_arena.h"

namespace terrace {

class MemoryTier {
 public:
  explicit MemoryTier(const TableSchema& schema);

  const TableSchema& schema() const { return schema_; }
  int64_t rows() const { return index_.size(); }  // without the default row
  // Of row p, behind its key: base() + p * stride.
  std::byte* base() { return arena_.data() + RowLayout::kKeyBytes; }
  const std::byte* row(uint32_t position) const {
    return arena_.data() + RowLayout::kKeyBytes + position * schema_.layout.stride;
  }
  uint64_t key(uint32_t position) const { return index_.key(position); }

  // Position of each key; keys not seen before get a row (initialised). Keys are distinct.
  void FindOrCreate(std::span<const uint64_t> keys, std::span<uint32_t> positions);
  // The rows at these positions go. Nobody may hold them.
  void Remove(std::span<const uint32_t> positions);
  // The last position that was ever handed out by FindOrCreate.
  int64_t last_position() const { return handed_; }
  // By FindOrCreate, since the start. Any thread.
  int64_t created() const { return created_.load(std::memory_order_relaxed); }
  int64_t removed() const { return removed_.load(std::memory_order_relaxed); }
  // By position: nobody's, since Remove.
  std::vector<bool> Free() const;
  // Position of each key, 0 where absent.
  void Find(std::span<const uint64_t> keys, std::span<uint32_t> positions) const;

  // Makes positions up to `rows` usable.
  void Grow(int64_t rows) { arena_.Grow((rows + 1) * schema_.layout.stride); }
  // Absent, distinct keys come to these positions, which hold none; their rows are not written.
  void Insert(std::span<const uint64_t> keys, std::span<const uint32_t> positions) {
    index_.Insert(keys, positions);
  }
  // The keys at these positions are absent from now on.
  void Erase(std::span<const uint32_t> positions) { index_.Erase(positions); }

  int64_t arena_bytes() const { return arena_.size(); }  // rows with their keys
  int64_t index_bytes() const { return index_.bytes(); }

 private:
  const TableSchema schema_;
  void CreateAt(std::span<const uint64_t> keys, std::span<uint32_t> positions);

  RowArena arena_;
  KeyIndex index_;
  int64_t handed_ = 0;
  std::vector<uint32_t> free_;                    // FindOrCreate takes from here first
  std::atomic<int64_t> created_{0}, removed_{0};  // counters
  Array<uint64_t> new_keys_;
  Array<uint32_t> new_positions_;
};

}  // namespace terrace
