// Numbers the distinct keys of a batch 0, 1, 2 ... in the order of first use.
//
// Most keys of a batch repeat: a table that fits the caches sorts them out, and the tier's index
// sees each key once. Memory is kept from batch to batch. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/memory.h"

namespace terrace {

class KeyDedup {
 public:
  static constexpr size_t kMaxKeys = size_t{1} << 31;

  // `first_mark` is for tests of what happens when marks run out.
  explicit KeyDedup(uint32_t first_mark = 1) : next_mark_(first_mark) {}

  // Writes the distinct keys, and the number of each key. Fewer than kMaxKeys.
  void Run(std::span<const uint64_t> keys, Array<uint64_t>* distinct, Array<uint32_t>* numbers);

  // What a batch with so many keys, so many of them distinct, needs; and what is held.
  static int64_t BytesFor(size_t keys, size_t distinct);
  int64_t bytes() const {
    return static_cast<int64_t>(slots_.capacity() * sizeof(Slot) + seen_.capacity() * 8);
  }

 private:
  // Open addressing. A slot is a mark, which is first_mark_ + the key's number, and the key. A slot
  // whose mark is below first_mark_ is of an earlier batch and free: nothing is cleared.
  struct Slot {
    uint64_t key;
    uint32_t mark;
  };

  void Start(size_t keys);
  void MakeRoomFor(size_t distinct, std::span<const uint64_t> placed);
  // The number of a key; it gets `next` if it is new.
  uint32_t Place(uint64_t key, uint64_t home, uint32_t next);

  Array<Slot> slots_;        // a power of two
  Array<uint64_t> seen_;     // the distinct keys, with room for all
  int shift_ = 64;           // 64 - log2(slots)
  uint32_t first_mark_ = 1;  // of this batch
  uint32_t next_mark_;       // of the next one
};

}  // namespace terrace
