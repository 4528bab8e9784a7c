#include "tier/key_filter.h"

#include <cmath>

namespace terrace {

KeyFilter::KeyFilter(size_t keys, double bits_per_key) {
  if (keys == 0 || bits_per_key <= 0) return;
  const double blocks = std::ceil(static_cast<double>(keys) * bits_per_key / 256);
  words_.assign(8 * static_cast<size_t>(blocks), 0);
}

}  // namespace terrace
