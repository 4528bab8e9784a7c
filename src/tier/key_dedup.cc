#include "tier/key_dedup.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "base/hash.h"

namespace terrace {
namespace {

// Keys whose slots are prefetched together.
constexpr size_t kBlock = 64;
constexpr size_t kMinSlots = 1024;
// Slots a key: linear probing stays short.
constexpr size_t kRoom = 2;

}  // namespace

int64_t KeyDedup::BytesFor(size_t keys, size_t distinct) {
  // The last block is taken for all new.
  return static_cast<int64_t>(std::bit_ceil((distinct + kBlock) * kRoom) * sizeof(Slot) +
                              (keys + keys / 16) * sizeof(uint64_t));
}

void KeyDedup::Start(size_t keys) {
  TERRACE_CHECK(keys < kMaxKeys);
  first_mark_ = next_mark_;
  if (keys <= std::numeric_limits<uint32_t>::max() - first_mark_) return;
  std::fill(slots_.begin(), slots_.end(), Slot{});
  first_mark_ = 1;
}

void KeyDedup::MakeRoomFor(size_t distinct, std::span<const uint64_t> placed) {
  if (distinct * kRoom <= slots_.size()) [[likely]]
    return;
  slots_.assign(std::bit_ceil(std::max(kMinSlots, distinct * kRoom)), Slot{});
  shift_ = std::countl_zero(slots_.size() - 1);
  for (uint32_t number = 0; number < placed.size(); ++number)
    Place(placed[number], Mix64(placed[number]) >> shift_, number);
}

uint32_t KeyDedup::Place(uint64_t key, uint64_t home, uint32_t next) {
  for (uint64_t place = home;; place = (place + 1) & (slots_.size() - 1)) {
    Slot& slot = slots_[place];
    if (slot.mark < first_mark_) {
      slot = {key, first_mark_ + next};
      return next;
    }
    if (slot.key == key) return slot.mark - first_mark_;
  }
}

void KeyDedup::Run(std::span<const uint64_t> keys, Array<uint64_t>* distinct,
                   Array<uint32_t>* numbers) {
  Start(keys.size());
  SetSize(numbers, keys.size());
  SetSize(&seen_, keys.size());
  uint64_t* const seen = seen_.data();
  uint32_t count = 0;
  uint64_t homes[kBlock];
  uint8_t late[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, keys.size() - begin);
    const uint64_t* const block = keys.data() + begin;
    uint32_t* const out = numbers->data() + begin;
    MakeRoomFor(count + n, {seen, count});
    const Slot* const slots = slots_.data();
    const uint32_t first_mark = first_mark_;
    const int shift = shift_;
    for (size_t i = 0; i < n; ++i) {
      homes[i] = Mix64(block[i]) >> shift;
      __builtin_prefetch(&slots[homes[i]], 1);
    }
    // Most keys were seen before and are in their first slot. Here no key waits for the one before
    // it, and no branch depends on the data.
    size_t late_count = 0;
    for (size_t i = 0; i < n; ++i) {
      const Slot& slot = slots[homes[i]];
      out[i] = slot.mark - first_mark;
      late[late_count] = static_cast<uint8_t>(i);
      late_count += (slot.key != block[i]) | (slot.mark < first_mark);
    }
    // The others in order: most are new, or came first in this block.
    for (size_t l = 0; l < late_count; ++l) {
      const size_t i = late[l];
      out[i] = Place(block[i], homes[i], count);
      seen[count] = block[i];
      count += out[i] == count;
    }
  }
  SetSize(distinct, count);
  std::copy_n(seen, count, distinct->data());
  next_mark_ = first_mark_ + count;
}

}  // namespace terrace
