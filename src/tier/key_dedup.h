// Numbers the distinct keys of a batch 0, 1, 2 ... in the order of first use.
//
// Most keys of a batch repeat: a table that fits the caches sorts them out, and the tier's index
// sees each key once. Memory is kept from batch to batch. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

class KeyDedup {
 public:
  // Fewer than 2^32 - 1 keys.
  void Run(std::span<const uint64_t> keys);

  // Of the last Run.
  std::span<const uint64_t> unique_keys() const { return {unique_keys_.data(), unique_count_}; }
  std::span<const uint32_t> ids() const { return ids_; }  // [keys]: number of each key

 private:
  // Open addressing. A slot is free unless it was written in this round, so nothing is cleared.
  struct Slot {
    uint64_t key = 0;
    uint32_t id = 0;
    uint32_t round = 0;
  };

  uint64_t Home(uint64_t key) const;
  void Place(uint64_t key, uint32_t id);
  void MakeRoomFor(size_t unique_keys);

  std::vector<Slot> slots_;  // a power of two
  int shift_ = 64;           // 64 - log2(slots)
  uint32_t round_ = 0;
  std::vector<uint64_t> unique_keys_;  // the first unique_count_
  size_t unique_count_ = 0;
  std::vector<uint32_t> ids_;
};

}  // namespace terrace
