#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "data/text_scan.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

constexpr size_t kStep = 64;  // bytes looked at together: one bit each in a word

#if defined(__AVX2__)
uint64_t EqualMask(const char* text, char byte) {
  const __m256i wanted = _mm256_set1_epi8(byte);
  const auto* in = reinterpret_cast<const __m256i*>(text);
  const auto low = static_cast<uint32_t>(
      _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(in), wanted)));
  const auto high = static_cast<uint32_t>(
      _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(in + 1), wanted)));
  return low | (uint64_t{high} << 32);
}
#elif defined(__SSE2__)
uint64_t EqualMask(const char* text, char byte) {
  const __m128i wanted = _mm_set1_epi8(byte);
  const auto* in = reinterpret_cast<const __m128i*>(text);
  uint64_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    const auto part =
        static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(in + i), wanted)));
    mask |= uint64_t{part} << (16 * i);
  }
  return mask;
}
#else
uint64_t EqualMask(const char* text, char byte) {
  uint64_t mask = 0;
  for (size_t i = 0; i < kStep; ++i) mask |= uint64_t{text[i] == byte} << i;
  return mask;
}
#endif

// Writes base + the place of each set bit. Eight at a time, whether or not there are so many: the
// branch on the number of bits is then almost always foreseen.
size_t WriteBits(uint64_t mask, uint32_t base, uint32_t* out) {
  const auto count = static_cast<size_t>(__builtin_popcountll(mask));
  for (size_t written = 0; written < count; written += 8) {
    for (size_t i = 0; i < 8; ++i) {
      out[written + i] = base + static_cast<uint32_t>(__builtin_ctzll(mask | (uint64_t{1} << 63)));
      mask &= mask - 1;
    }
  }
  return count;
}

SeparatorCount FindSeparators(const char* text, size_t size, char delimiter, uint32_t* separators,
                              uint32_t* line_ends) {
  SeparatorCount count;
  const auto take = [&](uint64_t delimiters, uint64_t newlines, size_t at) {
    const uint64_t both = delimiters | newlines;
    for (; newlines != 0; newlines &= newlines - 1) {
      const uint64_t before = (newlines & -newlines) - 1;
      line_ends[count.lines++] =
          static_cast<uint32_t>(count.separators + __builtin_popcountll(both & before));
    }
    count.separators += WriteBits(both, static_cast<uint32_t>(at), separators + count.separators);
  };
  size_t at = 0;
  for (; at + kStep <= size; at += kStep)
    take(EqualMask(text + at, delimiter), EqualMask(text + at, '\n'), at);
  uint64_t delimiters = 0;
  uint64_t newlines = 0;
  for (size_t i = 0; at + i < size; ++i) {
    delimiters |= uint64_t{text[at + i] == delimiter} << i;
    newlines |= uint64_t{text[at + i] == '\n'} << i;
  }
  take(delimiters, newlines, at);
  return count;
}

size_t CountBytes(const char* text, size_t size, char byte) {
  size_t count = 0;
  size_t at = 0;
  for (; at + kStep <= size; at += kStep)
    count += static_cast<size_t>(__builtin_popcountll(EqualMask(text + at, byte)));
  for (; at < size; ++at) count += text[at] == byte;
  return count;
}

}  // namespace

const TextScanKernels kTextScanKernels = {FindSeparators, CountBytes};

}  // namespace TERRACE_ISA
}  // namespace terrace
