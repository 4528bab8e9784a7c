// Where the newest entry of each key in a partition's logs is: exact, 11 bytes a slot.
//
// A hash table in the order of the hash: slots hold mixes in ascending order, each at or after the
// slot its value points to, empty slots between. A search walks right from there and ends at the
// first larger mix. Growing, and dropping what a merge has taken, is one pass in order; there are
// no single removals. Mixes are stored whole, so a key that is found is the key.
// For one thread at a time. Throws std::bad_alloc, before any change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/memory.h"

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
  // The top `shift` bits of all mixes are the same: the partition's.
  explicit LogIndex(int shift);

  size_t size() const { return size_; }
  size_t bytes() const { return mixes_.size() * kSlotBytes; }

  void Prefetch(uint64_t mix) const { __builtin_prefetch(&mixes_[Home(mix)]); }
  LogPlace Find(uint64_t mix) const {
    const size_t slot = LowerBound(mix);
    return mixes_[slot] == mix ? PlaceAt(slot) : LogPlace{};
  }
  // Returns what was there.
  LogPlace Set(uint64_t mix, LogPlace place);

  // Calls f(mix, place) in the order of mixes.
  template <typename F>
  void ForEach(F f) const {
    for (size_t slot = 0; slot + 1 < mixes_.size(); ++slot)
      if (!EmptyAt(slot)) f(mixes_[slot], PlaceAt(slot));
  }
  // Replaces each place by f(mix, place) in the order of mixes, dropping it where that is none, and
  // gives up the room that is left over.
  template <typename F>
  void Update(F f) {
    LogIndex kept(shift_);
    size_t count = 0;
    for (size_t slot = 0; slot + 1 < mixes_.size(); ++slot) {
      if (EmptyAt(slot)) continue;
      const LogPlace place = f(mixes_[slot], PlaceAt(slot));
      SetPlace(slot, place);
      count += place.none() ? 0 : 1;
    }
    kept.Allocate(CapacityFor(count));
    ForEach([&](uint64_t mix, LogPlace place) { kept.Append(mix, place); });
    *this = std::move(kept);
  }

 private:
  static constexpr size_t kSlotBytes = 11;
  static constexpr size_t kMinCapacity = 24;
  static constexpr uint64_t kEmptyMix = ~0ULL;  // with place none; as a mix, with any other place

  // Full by seven eighths at the most.
  static size_t CapacityFor(size_t entries) { return kMinCapacity + entries + entries / 7; }

  size_t Home(uint64_t mix) const {
    return static_cast<size_t>((static_cast<unsigned __int128>(mix << shift_) * capacity_) >> 64);
  }
  size_t LowerBound(uint64_t mix) const {
    size_t slot = Home(mix);
    while (mixes_[slot] < mix) ++slot;  // the last slot is always empty, and so the largest
    return slot;
  }
  bool EmptyAt(size_t slot) const { return mixes_[slot] == kEmptyMix && PlaceAt(slot).none(); }
  LogPlace PlaceAt(size_t slot) const {
    uint32_t bits = 0;
    std::memcpy(&bits, &places_[3 * slot], 3);
    return {bits};
  }
  void SetPlace(size_t slot, LogPlace place) { std::memcpy(&places_[3 * slot], &place.bits, 3); }
  void Allocate(size_t capacity);
  // Mixes come in order.
  void Append(uint64_t mix, LogPlace place);
  void Grow();

  int shift_;
  size_t capacity_ = 0;  // homes; slots go on behind for what is pushed beyond
  size_t size_ = 0;
  size_t end_ = 0;  // of Append: behind the last slot in use
  Array<uint64_t> mixes_;
  Array<uint8_t> places_;
};

}  // namespace terrace
