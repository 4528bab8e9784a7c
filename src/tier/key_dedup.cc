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

uint64_t KeyDedup::Home(uint64_t key) const { return Mix64(key) >> shift_; }

void KeyDedup::Place(uint64_t key, uint32_t id) {
  uint64_t place = Home(key);
  while (slots_[place].round == round_) place = (place + 1) & (slots_.size() - 1);
  slots_[place] = {key, id, round_};
}

void KeyDedup::MakeRoomFor(size_t unique_keys) {
  if (unique_keys * kRoom <= slots_.size()) [[likely]]
    return;
  slots_.assign(std::max(kMinSlots, std::bit_ceil(unique_keys * kRoom)), Slot{});
  shift_ = std::countl_zero(slots_.size() - 1);
  round_ = 1;
  for (size_t id = 0; id < unique_count_; ++id) Place(unique_keys_[id], static_cast<uint32_t>(id));
}

void KeyDedup::Run(std::span<const uint64_t> keys) {
  TERRACE_CHECK(keys.size() < std::numeric_limits<uint32_t>::max());
  ids_.resize(keys.size());
  if (unique_keys_.size() < keys.size()) unique_keys_.resize(keys.size());
  unique_count_ = 0;
  if (++round_ == 0) {  // 2^32 batches ago a slot may have been written in "this" round
    std::fill(slots_.begin(), slots_.end(), Slot{});
    round_ = 1;
  }
  uint64_t homes[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, keys.size() - begin);
    MakeRoomFor(unique_count_ + n);
    for (size_t i = 0; i < n; ++i) {
      homes[i] = Home(keys[begin + i]);
      __builtin_prefetch(&slots_[homes[i]], 1);
    }
    Slot* const slots = slots_.data();
    const uint64_t mask = slots_.size() - 1;
    const uint32_t round = round_;
    size_t count = unique_count_;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t key = keys[begin + i];
      uint64_t place = homes[i];
      while (slots[place].round == round && slots[place].key != key) place = (place + 1) & mask;
      // New or seen before: a branch would be mispredicted too often.
      const bool is_new = slots[place].round != round;
      const uint32_t id = is_new ? static_cast<uint32_t>(count) : slots[place].id;
      slots[place] = {key, id, round};
      unique_keys_[count] = key;
      count += is_new;
      ids_[begin + i] = id;
    }
    unique_count_ = count;
  }
}

}  // namespace terrace
