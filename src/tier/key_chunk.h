// A cache line of a key index: up to 12 entries, each a tag and a position.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tier/chunk_map.h"

namespace terrace {

// All zero is an empty chunk.
struct alignas(64) KeyChunk {
  static constexpr int kEntries = 12;
  static constexpr uint8_t kMaxPassed = 255;

  uint8_t tags[kEntries];
  uint8_t count;       // entries; they are the first ones
  uint8_t passed;      // entries that found this chunk full on their way from home; 255: or more
  uint16_t displaced;  // bit i: entry i is not at home
  uint32_t positions[kEntries];

  uint32_t present() const { return (1u << count) - 1; }  // bit i: entry i exists

  // Bit i: entry i has a tag of the range.
  uint32_t Match(TagRange range) const {
#if defined(__SSE2__)
    const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
    const __m128i from_first = _mm_sub_epi8(line, _mm_set1_epi8(static_cast<char>(range.first)));
    const __m128i more = _mm_set1_epi8(static_cast<char>(range.more));
    const __m128i within = _mm_cmpeq_epi8(_mm_min_epu8(from_first, more), from_first);
    return static_cast<uint32_t>(_mm_movemask_epi8(within)) & present();
#else
    uint32_t within = 0;
    for (int i = 0; i < kEntries; ++i) within |= uint32_t{range.Contains(tags[i])} << i;
    return within & present();
#endif
  }
  uint32_t Match(uint8_t tag) const {
#if defined(__SSE2__)
    const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
    const __m128i equal = _mm_cmpeq_epi8(line, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<uint32_t>(_mm_movemask_epi8(equal)) & present();
#else
    return Match(TagRange{tag, 0});
#endif
  }

  // count < kEntries.
  void Add(uint8_t tag, uint32_t position, bool not_at_home) {
    tags[count] = tag;
    positions[count] = position;
    displaced = static_cast<uint16_t>(displaced | int{not_at_home} << count);
    ++count;
  }
  // The last entry takes the place of entry i.
  void Remove(int i) {
    --count;
    tags[i] = tags[count];
    positions[i] = positions[count];
    const int last = (displaced >> count) & 1;
    displaced = static_cast<uint16_t>(((displaced & ~(1 << i)) | last << i) & ~(1 << count));
  }

  void CountPassed() { passed += passed < kMaxPassed; }
  // The counter cannot leave its maximum: it does not know by how much it was exceeded.
  void UncountPassed() { passed -= passed < kMaxPassed; }
};
static_assert(sizeof(KeyChunk) == 64);

}  // namespace terrace
