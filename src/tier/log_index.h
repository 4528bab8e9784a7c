// Where the newest entry of each key in a partition's logs is: exact, 11 bytes a slot.
//
// A hash table in the order of the hash: slots hold hashes in ascending order, each at or after the
// slot its value points to, empty slots between. A search walks right from there and ends at the
// first larger one. Growing, and dropping what a merge has taken, is a pass in order and in place;
// there are no single removals. The hash is the mix with its halves exchanged, so that keys spread
// over the table also when they come in the order of their mixes. It is stored whole: a key that is
// found is the key.
// For one thread at a time. Throws Error(kIo) when memory runs out; nothing has changed then.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/memory.h"
#include "tier/key_sort.h"

namespace terrace {

// A place in a partition's logs, 24 bits: a page, or a slot of the buffer that is not yet written.
struct LogPlace {
  static constexpr uint32_t kBuffered = 1u << 23;
  static constexpr uint32_t kTombstone = 1u << 22;
  static constexpr uint32_t kMaxNumber = kTombstone - 2;
  static constexpr uint32_t kNone = (1u << 24) - 1;

  uint32_t bits = kNone;

  static LogPlace Page(uint32_t page, bool tombstone) {
    return {page | (tombstone ? kTombstone : 0)};
  }
  static LogPlace Buffer(uint32_t slot, bool tombstone) {
    return {slot | kBuffered | (tombstone ? kTombstone : 0)};
  }
  bool none() const { return bits == kNone; }
  bool buffered() const { return (bits & kBuffered) != 0; }
  bool tombstone() const { return (bits & kTombstone) != 0; }
  uint32_t number() const { return bits & (kTombstone - 1); }
};

class LogIndex {
 public:
  LogIndex() { Spread(kMinCapacity); }

  // Items whose `mix` is the hash are sorted as the index wants them.
  static constexpr uint64_t HashOf(uint64_t mix) { return std::rotl(mix, 32); }
  static constexpr uint64_t MixOf(uint64_t hash) { return std::rotr(hash, 32); }

  size_t size() const { return size_; }
  size_t bytes() const { return memory_.size(); }

  // Most entries are on the line of their home or on the next one.
  void Prefetch(uint64_t mix) const {
    const std::byte* const home = At(Home(HashOf(mix), capacity_));
    __builtin_prefetch(home);
    __builtin_prefetch(home + 64);
  }
  LogPlace Find(uint64_t mix) const {
    const uint64_t hash = HashOf(mix);
    const size_t slot = LowerBound(hash);
    return HashAt(slot) == hash ? PlaceAt(slot) : LogPlace{};
  }
  // Returns what was there.
  LogPlace Set(uint64_t mix, LogPlace place);

  // Of an empty index: these entries, each with its hash in place of the mix and the bits of its
  // place, in the order of their hashes.
  void Assign(std::span<const KeyItem> items);

  // Calls f(mix, place) for each, in no order of mixes.
  template <typename F>
  void ForEach(F f) const {
    for (size_t slot = 0; slot < slots_; ++slot)
      if (!EmptyAt(slot)) f(MixOf(HashAt(slot)), PlaceAt(slot));
  }
  // Replaces each place by f(mix, place), dropping it where that is none, and gives up the room
  // that is left over.
  template <typename F>
  void Update(F f) {
    for (size_t slot = 0; slot < slots_; ++slot) {
      if (EmptyAt(slot)) continue;
      const LogPlace place = f(MixOf(HashAt(slot)), PlaceAt(slot));
      Store(slot, place.none() ? kEmpty : HashAt(slot), place);
      if (place.none()) --size_;
    }
    Spread(CapacityFor(size_));
  }

 private:
  static constexpr size_t kSlotBytes = 11;  // hash, place
  static constexpr size_t kMinCapacity = 24;
  static constexpr uint64_t kEmpty = ~0ULL;  // with place none; a hash of ~0 has another place

  // Full by six sevenths at the most: a new entry moves some 20 others then. At eleven twelfths it
  // would be 70, for a twentieth less memory.
  static size_t CapacityFor(size_t entries) { return kMinCapacity + entries + entries / 6; }
  bool Full() const { return size_ * 7 >= capacity_ * 6; }

  static size_t Home(uint64_t hash, size_t capacity) {
    return static_cast<size_t>((static_cast<unsigned __int128>(hash) * capacity) >> 64);
  }
  size_t LowerBound(uint64_t hash) const {
    size_t slot = Home(hash, capacity_);
    while (HashAt(slot) < hash) ++slot;  // the last slot is always empty, and so the largest
    return slot;
  }
  std::byte* At(size_t slot) const { return memory_.data() + slot * kSlotBytes; }
  uint64_t HashAt(size_t slot) const {
    uint64_t hash;
    std::memcpy(&hash, At(slot), sizeof(hash));
    return hash;
  }
  // Three bytes are loaded and stored with the hash's last one before them: as one word.
  LogPlace PlaceAt(size_t slot) const {
    uint32_t word;
    std::memcpy(&word, At(slot) + 7, sizeof(word));
    return {word >> 8};
  }
  bool EmptyAt(size_t slot) const { return HashAt(slot) == kEmpty && PlaceAt(slot).none(); }
  void Store(size_t slot, uint64_t hash, LogPlace place) {
    std::memcpy(At(slot), &hash, sizeof(hash));
    const uint32_t word = static_cast<uint32_t>(hash >> 56) | place.bits << 8;
    std::memcpy(At(slot) + 7, &word, sizeof(word));
  }
  void Clear(size_t begin, size_t end) { std::memset(At(begin), 0xff, (end - begin) * kSlotBytes); }
  static size_t SlotsFor(size_t capacity, size_t end) {
    return std::max(capacity + capacity / 64 + 8, end + 1);
  }
  // Moves all entries to where they belong in a table of this capacity, in place.
  void Spread(size_t capacity);
  // Lays out read(0) .. read(count - 1), which come in the order of their hashes, in all slots.
  template <typename Read>
  void LayOut(size_t count, Read read);

  size_t capacity_ = 0;  // homes
  size_t slots_ = 0;     // capacity_, and some behind for what is pushed beyond
  size_t size_ = 0;
  MappedBytes memory_;
};

}  // namespace terrace
