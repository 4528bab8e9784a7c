#include "tier/key_sort.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tier/disk_page.h"

namespace terrace {
namespace {

constexpr int kBits = 11;  // of a pass; there are three
constexpr int kUnsortedBits = 64 - 3 * kBits;

bool ByMix(const KeyItem& a, const KeyItem& b) { return a.mix < b.mix; }

}  // namespace

void SortItems(Array<KeyItem>* items, Array<KeyItem>* scratch) {
  if (items->size() < 1024) {
    std::stable_sort(items->begin(), items->end(), ByMix);
    return;
  }
  scratch->resize(items->size());
  for (int shift = kUnsortedBits; shift < 64; shift += kBits) {
    std::array<uint32_t, 1 << kBits> next{};
    const auto digit = [shift](const KeyItem& item) {
      return (item.mix >> shift) & ((1 << kBits) - 1);
    };
    for (const KeyItem& item : *items) ++next[digit(item)];
    uint32_t sum = 0;
    for (uint32_t& n : next) sum += std::exchange(n, sum);
    for (const KeyItem& item : *items) (*scratch)[next[digit(item)]++] = item;
    items->swap(*scratch);
  }
}

void OrderFully(std::span<KeyItem> items) {
  for (size_t begin = 0, end; begin < items.size(); begin = end) {
    bool sorted = true;
    for (end = begin + 1; end < items.size(); ++end) {
      if (items[end].mix >> kUnsortedBits != items[begin].mix >> kUnsortedBits) break;
      sorted = sorted && items[end - 1].mix <= items[end].mix;
    }
    if (sorted) continue;
    const auto first = items.begin() + static_cast<ptrdiff_t>(begin);
    std::stable_sort(first, first + static_cast<ptrdiff_t>(end - begin), ByMix);
  }
}

void SortItemsFully(Array<KeyItem>* items, Array<KeyItem>* scratch) {
  SortItems(items, scratch);
  OrderFully(*items);
}

size_t KeepLast(std::span<KeyItem> items) {
  size_t kept = 0;
  for (size_t i = 0; i < items.size(); ++i)
    if (i + 1 == items.size() || items[i + 1].mix != items[i].mix) items[kept++] = items[i];
  return kept;
}

void SortKeys(std::span<const uint64_t> keys, Array<KeyItem>* items, Array<KeyItem>* scratch) {
  items->resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i)
    (*items)[i] = {MixOfKey(keys[i]), static_cast<uint32_t>(i)};
  SortItems(items, scratch);
}

}  // namespace terrace
