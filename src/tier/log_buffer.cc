#include "tier/log_buffer.h"

#include <algorithm>
#include <numeric>

namespace terrace {

std::vector<uint32_t> LogBuffer::Choose(bool everything, size_t rows_per_page) const {
  std::vector<uint32_t> slots;
  const auto by_mix = [this](uint32_t a, uint32_t b) { return mixes_[a] < mixes_[b]; };
  if (!everything) {
    for (uint32_t slot = 0; slot < size(); ++slot)
      if ((flags_[slot] & kAgain) == 0) slots.push_back(slot);
    if (slots.size() >= std::max(rows_per_page, size() / 4)) {
      std::sort(slots.begin(), slots.end(), by_mix);
      slots.resize(slots.size() / rows_per_page * rows_per_page);
      return slots;
    }
  }
  slots.resize(size());
  std::iota(slots.begin(), slots.end(), 0);
  std::sort(slots.begin(), slots.end(), by_mix);
  return slots;
}

}  // namespace terrace
