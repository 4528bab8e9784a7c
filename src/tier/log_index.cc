#include "tier/log_index.h"

#include <algorithm>

namespace terrace {

LogIndex::LogIndex(int shift) : shift_(shift) { Allocate(kMinCapacity); }

void LogIndex::Allocate(size_t capacity) {
  capacity_ = capacity;
  const size_t slots = capacity + capacity / 64 + 8;
  Array<uint64_t> mixes(slots, kEmptyMix);
  Array<uint8_t> places(3 * slots, 0xff);
  mixes_ = std::move(mixes);
  places_ = std::move(places);
}

void LogIndex::Append(uint64_t mix, LogPlace place) {
  if (place.none()) return;
  const size_t slot = std::max(end_, Home(mix));
  if (slot + 1 >= mixes_.size()) {  // pushed beyond the last slot: more room behind
    mixes_.resize(mixes_.size() + mixes_.size() / 8 + 8, kEmptyMix);
    places_.resize(3 * mixes_.size(), 0xff);
  }
  mixes_[slot] = mix;
  SetPlace(slot, place);
  end_ = slot + 1;
  ++size_;
}

LogPlace LogIndex::Set(uint64_t mix, LogPlace place) {
  for (;;) {
    const size_t slot = LowerBound(mix);
    const LogPlace before = mixes_[slot] == mix ? PlaceAt(slot) : LogPlace{};
    if (!before.none()) {
      SetPlace(slot, place);
      return before;
    }
    size_t empty = slot;
    while (!EmptyAt(empty)) ++empty;
    if (size_ * 8 < capacity_ * 7 && empty + 1 < mixes_.size()) {
      std::memmove(&mixes_[slot + 1], &mixes_[slot], (empty - slot) * sizeof(uint64_t));
      std::memmove(&places_[3 * (slot + 1)], &places_[3 * slot], 3 * (empty - slot));
      mixes_[slot] = mix;
      SetPlace(slot, place);
      ++size_;
      return before;
    }
    Grow();
  }
}

void LogIndex::Grow() {
  LogIndex larger(shift_);
  larger.Allocate(capacity_ + std::max(capacity_ / 4, kMinCapacity));
  ForEach([&](uint64_t mix, LogPlace place) { larger.Append(mix, place); });
  *this = std::move(larger);
}

}  // namespace terrace
