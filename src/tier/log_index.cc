#include "tier/log_index.h"

#include "base/error.h"

namespace terrace {

template <typename Read>
void LogIndex::LayOut(size_t count, Read read) {
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const KeyItem item = read(i);
    const size_t slot = std::max(end, Home(item.mix, capacity_));
    Clear(end, slot);
    Store(slot, item.mix, {item.index});
    end = slot + 1;
  }
  Clear(end, slots_);
}

void LogIndex::Spread(size_t capacity) {
  size_t end = 0;
  for (size_t slot = 0; slot < slots_; ++slot)
    if (!EmptyAt(slot)) end = std::max(end, Home(HashAt(slot), capacity)) + 1;
  const size_t slots = SlotsFor(capacity, end);

  // All entries go to the far end first. From there each moves left or stays: behind it is room for
  // those behind it, and nobody's place is taken before he has left it.
  const size_t room = std::max(slots, slots_);
  if (room > slots_) memory_.Resize(room * kSlotBytes);
  size_t first = room;
  for (size_t slot = slots_; slot-- > 0;)
    if (!EmptyAt(slot)) Store(--first, HashAt(slot), PlaceAt(slot));
  capacity_ = capacity;
  slots_ = slots;
  LayOut(room - first, [&](size_t i) {
    return KeyItem{HashAt(first + i), PlaceAt(first + i).bits};
  });
  memory_.Resize(slots * kSlotBytes);
}

void LogIndex::Assign(std::span<const KeyItem> items) {
  TERRACE_CHECK(size_ == 0);
  const size_t capacity = CapacityFor(items.size());
  size_t end = 0;
  for (const KeyItem& item : items) end = std::max(end, Home(item.mix, capacity)) + 1;
  const size_t slots = SlotsFor(capacity, end);
  memory_.Resize(slots * kSlotBytes);
  capacity_ = capacity;
  slots_ = slots;
  size_ = items.size();
  LayOut(items.size(), [&](size_t i) { return items[i]; });
}

LogPlace LogIndex::Set(uint64_t mix, LogPlace place) {
  const uint64_t hash = HashOf(mix);
  for (;;) {
    const size_t slot = LowerBound(hash);
    const LogPlace before = HashAt(slot) == hash ? PlaceAt(slot) : LogPlace{};
    if (!before.none()) {
      Store(slot, hash, place);
      return before;
    }
    size_t empty = slot;
    while (!EmptyAt(empty)) ++empty;
    if (!Full() && empty + 1 < slots_) {
      std::memmove(At(slot + 1), At(slot), (empty - slot) * kSlotBytes);
      Store(slot, hash, place);
      ++size_;
      return before;
    }
    // By a twelfth, more or less: the indexes of many partitions must not all grow at once.
    Spread(capacity_ + kMinCapacity + capacity_ / 24 + hash % (capacity_ / 12));
  }
}

}  // namespace terrace
