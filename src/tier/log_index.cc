#include "tier/log_index.h"

#include <algorithm>

#include "base/error.h"

namespace terrace {

LogIndex::LogIndex(int shift) : shift_(shift) { Spread(kMinCapacity); }

void LogIndex::Spread(size_t capacity) {
  size_t end = 0;
  ForEach([&](uint64_t mix, LogPlace) { end = std::max(end, Home(mix, capacity)) + 1; });
  const size_t slots = std::max(capacity + capacity / 64 + 8, end + 1);

  // All entries go to the far end first. From there each moves left or stays: behind it is room for
  // those behind it, and nobody's place is taken before he has left it.
  const size_t room = std::max(slots, slots_);
  if (room > slots_) memory_.Resize(room * kSlotBytes);
  size_t next = room;
  for (size_t slot = slots_; slot-- > 0;)
    if (!EmptyAt(slot)) Store(--next, MixAt(slot), PlaceAt(slot));
  end = 0;
  for (; next < room; ++next) {
    const uint64_t mix = MixAt(next);
    const LogPlace place = PlaceAt(next);
    const size_t slot = std::max(end, Home(mix, capacity));
    Clear(end, slot);
    Store(slot, mix, place);
    end = slot + 1;
  }
  Clear(end, slots);
  memory_.Resize(slots * kSlotBytes);
  capacity_ = capacity;
  slots_ = slots;
}

void LogIndex::Assign(std::span<const KeyItem> items) {
  TERRACE_CHECK(size_ == 0);
  const size_t capacity = CapacityFor(items.size());
  size_t end = 0;
  for (const KeyItem& item : items) end = std::max(end, Home(item.mix, capacity)) + 1;
  const size_t slots = std::max(capacity + capacity / 64 + 8, end + 1);
  memory_.Resize(slots * kSlotBytes);
  end = 0;
  for (const KeyItem& item : items) {
    const size_t slot = std::max(end, Home(item.mix, capacity));
    Clear(end, slot);
    Store(slot, item.mix, {item.index});
    end = slot + 1;
  }
  Clear(end, slots);
  capacity_ = capacity;
  slots_ = slots;
  size_ = items.size();
}

LogPlace LogIndex::Set(uint64_t mix, LogPlace place) {
  for (;;) {
    const size_t slot = LowerBound(mix);
    const LogPlace before = MixAt(slot) == mix ? PlaceAt(slot) : LogPlace{};
    if (!before.none()) {
      Store(slot, mix, place);
      return before;
    }
    size_t empty = slot;
    while (!EmptyAt(empty)) ++empty;
    if (size_ * 8 < capacity_ * 7 && empty + 1 < slots_) {
      std::memmove(At(slot + 1), At(slot), (empty - slot) * kSlotBytes);
      Store(slot, mix, place);
      ++size_;
      return before;
    }
    // By an eighth, more or less: the indexes of many partitions must not all grow at once.
    Spread(capacity_ + kMinCapacity + capacity_ / 16 + mix % (capacity_ / 8));
  }
}

}  // namespace terrace
