// Sorts the keys of a batch the way the disk tier stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.h"

namespace terrace {

// The mix of a key, and what belongs to it: its place in a batch, or in the logs.
struct KeyItem {
  uint64_t mix;
  uint32_t index;
};

// Sorts by the top 33 bits of the mix, which puts keys in the order of partitions and pages; more
// would only order keys within a page. Stable: items with the same mix stay in order.
void SortItems(Array<KeyItem>* items, Array<KeyItem>* scratch);
// Puts items that are sorted so in the order of all bits, for where order counts.
void OrderFully(std::span<KeyItem> items);
// Both.
void SortItemsFully(Array<KeyItem>* items, Array<KeyItem>* scratch);
// Moves the last of each mix to the front, in order; returns how many. `items` are sorted fully.
size_t KeepLast(std::span<KeyItem> items);
// The items of `keys`, sorted as by SortItems; index is the place in `keys`.
void SortKeys(std::span<const uint64_t> keys, Array<KeyItem>* items, Array<KeyItem>* scratch);

}  // namespace terrace
