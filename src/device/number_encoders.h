// How lanes of floats become codes: one encoder a codec (included by codec_simd.cc).
#pragma once

#include <cstdint>

#include "device/lanes.h"
#include "device/packed_numbers.h"

namespace terrace {

typedef int32_t IntLanes __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef uint32_t UintLanes __attribute__((vector_size(kLanes * sizeof(uint32_t))));

inline constexpr int32_t kInfBits = 0x7f800000;
inline constexpr int32_t kLeastScale = 0x00800000;  // 2^-126: a smaller one would be imprecise

// Random bits of the numbers from `lane` on of the row with this word: two rounds of
// multiplication, with half of the word before each.
TERRACE_HD void RandomLanes(uint64_t word, int lane, UintLanes& bits) {
  const UintLanes count = {0, 1, 2, 3, 4, 5, 6, 7};
  bits = (count + static_cast<uint32_t>(lane)) * 0x9e3779b9u + static_cast<uint32_t>(word);
  bits ^= bits >> 16;
  bits *= 0x7feb352du;
  bits ^= bits >> 15;
  bits += static_cast<uint32_t>(word >> 32);
  bits *= 0x846ca68bu;
  bits ^= bits >> 16;
}

TERRACE_HD void Floor(const Lanes& y, Lanes& below) {
#if defined(__AVX__)
  below = _mm256_floor_ps(y);
#else
  below = __builtin_convertvector(__builtin_convertvector(y, IntLanes), Lanes);
  below = below > y ? below - 1.0f : below;
#endif
}

// NaN becomes one of the bounds.
TERRACE_HD void Clamp(float bound, Lanes& y) {
#if defined(__AVX__)
  y = _mm256_max_ps(_mm256_min_ps(y, Lanes{} + bound), Lanes{} - bound);
#else
  y = y < bound ? y : Lanes{} + bound;
  y = y > -bound ? y : Lanes{} - bound;
#endif
}

// The integer below or above y; a number that is a code stays. Not floor(y + u): that sum is
// rounded, so such a number would drift up.
template <bool kStochastic>
TERRACE_HD void RoundToInt(const Lanes& y, const UintLanes& random, IntLanes& code) {
  Lanes below;
  Floor(y, below);
  const Lanes share = y - below;  // of a step, in [0, 1]
  code = __builtin_convertvector(below, IntLanes);
  if constexpr (kStochastic) {
    const IntLanes share_bits = __builtin_convertvector(share * 0x1p24f, IntLanes);
    code = share_bits > (IntLanes)(random >> 8) ? code + 1 : code;
  } else {
    code = share >= 0.5f ? code + 1 : code;
  }
}

// The largest lane, into all of them.
TERRACE_HD void SpreadLargest(IntLanes& v) {
  IntLanes other = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  v = other > v ? other : v;
  other = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  v = other > v ? other : v;
  other = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
  v = other > v ? other : v;
}

// The largest lane of each of kLanes vectors: that of rows[k] is lane k of `largest`.
TERRACE_HD void LargestOfEach(const IntLanes (&rows)[kLanes], IntLanes& largest) {
  const auto larger = [](const IntLanes& a, const IntLanes& b, IntLanes& of) {
    of = a > b ? a : b;
  };
  IntLanes fours[4], twos[2];  // of two vectors four lanes each, of four vectors two each
  for (int k = 0; k < 4; ++k)
    larger(__builtin_shufflevector(rows[k], rows[k + 4], 0, 1, 2, 3, 8, 9, 10, 11),
           __builtin_shufflevector(rows[k], rows[k + 4], 4, 5, 6, 7, 12, 13, 14, 15), fours[k]);
  for (int k = 0; k < 2; ++k) {
    const IntLanes& a = fours[2 * k];
    const IntLanes& b = fours[2 * k + 1];
    larger(__builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13),
           __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15), twos[k]);
  }
  larger(__builtin_shufflevector(twos[0], twos[1], 0, 2, 8, 10, 4, 6, 12, 14),
         __builtin_shufflevector(twos[0], twos[1], 1, 3, 9, 11, 5, 7, 13, 15), largest);
}

// Writes the first n codes.
template <typename Code>
TERRACE_HD void StoreCodes(const IntLanes& codes, int n, Code* to) {
  if (n < kLanes) {
    for (int l = 0; l < n; ++l) to[l] = static_cast<Code>(codes[l]);
    return;
  }
#if defined(__AVX2__)
  const __m128i low = _mm256_castsi256_si128((__m256i)codes);
  const __m128i high = _mm256_extracti128_si256((__m256i)codes, 1);
  __m128i narrow = Code(-1) < 0 ? _mm_packs_epi32(low, high) : _mm_packus_epi32(low, high);
  if constexpr (sizeof(Code) == 1) narrow = _mm_packs_epi16(narrow, narrow);
#else
  const Vec<Code, kLanes> narrow = __builtin_convertvector(codes, Vec<Code, kLanes>);
#endif
  __builtin_memcpy(to, &narrow, kLanes * sizeof(Code));
}

// Where the block of lanes at i starts. The last one goes back so that it is full: numbers are then
// read or coded twice, alike. With fewer numbers than lanes it is not full.
TERRACE_HD int BlockStart(int i, int n) { return n >= kLanes && i > n - kLanes ? n - kLanes : i; }
TERRACE_HD int BlockCount(int n) { return n < kLanes ? n : kLanes; }

// The encoders: made for up to kLanes rows (Start), they turn lanes of floats of one row (StartRow)
// into codes. `least` is what the code of a positive number is at least. Unchecked they are for
// numbers of sizes up to kLargest (as bits) only; checked for all, and count those that are too
// large in `beyond`.
template <typename CodeType>
struct IntEncoder {
  using Code = CodeType;
  using Numbers = IntNumbers<Code>;
  static constexpr int32_t kLargest = 0x7f7ffffe;  // its code times its scale is finite
  float scales[kLanes];
  float scale;

  // The scales of the first kLanes of `rows` rows of n numbers, `stride` floats apart. The sizes of
  // their largest numbers come into `largest`.
  template <bool kChecked>
  TERRACE_HD void Start(const float* x, int64_t stride, int64_t rows, int n, IntLanes& largest) {
    IntLanes sizes[kLanes];
    if (rows >= kLanes)
      for (int k = 0; k < kLanes; ++k) LanesOfRow<kChecked>(x + k * stride, n, sizes[k]);
    else
      for (int k = 0; k < kLanes; ++k) {
        sizes[k] = IntLanes{};
        if (k < rows) LanesOfRow<kChecked>(x + k * stride, n, sizes[k]);
      }
    IntLanes of_rows;
    LargestOfEach(sizes, of_rows);
    largest = of_rows > largest ? of_rows : largest;
    if constexpr (kChecked) of_rows = of_rows > kLargest ? kLargest | IntLanes{} : of_rows;
    const IntLanes bits = (IntLanes)((Lanes)of_rows / Numbers::kTop);
    StoreLanes((Lanes)(bits > kLeastScale ? bits : kLeastScale | IntLanes{}), kLanes, false,
               scales);
  }

  // The largest of each lane.
  template <bool kChecked>
  TERRACE_HD static void LanesOfRow(const float* x, int n, IntLanes& largest) {
    for (int i = 0; i < n; i += kLanes) {
      Lanes part;
      LoadLanes(x + BlockStart(i, n), BlockCount(n), part);
      // Sizes of floats are in the order of their bits.
      IntLanes size = (IntLanes)part & 0x7fffffff;
      if constexpr (kChecked) size = size < kInfBits ? size : IntLanes{};
      largest = i == 0 ? size : size > largest ? size : largest;
    }
  }

  TERRACE_HD void StartRow(int k, int n, char* to) {
    scale = scales[k];
    __builtin_memcpy(to + CodesBytes(Numbers::kCodec, n), &scale, sizeof(scale));
  }

  template <bool kStochastic, bool kChecked>
  TERRACE_HD void Encode(const Lanes& x, const IntLanes& size, const UintLanes& random, int least,
                         IntLanes& code, [[maybe_unused]] IntLanes& beyond) const {
    Lanes y = x / scale;
    Clamp(Numbers::kTop, y);  // Inf, or the last bit of the quotient
    RoundToInt<kStochastic>(y, random, code);
    if (least > 0) code = (((IntLanes)x > 0) & (code < least)) ? least | IntLanes{} : code;
    if constexpr (kChecked) {
      code = size > kInfBits ? Numbers::kNan | IntLanes{} : code;
      beyond -= size == kInfBits;
    }
  }
};

// What the encoders of 16 bits share: sign, largest number, NaN.
template <bool kChecked, int32_t kTopCode, int32_t kNanCode>
TERRACE_HD void FinishHalf(const Lanes& x, const IntLanes& size, int least, IntLanes& code,
                           [[maybe_unused]] IntLanes& beyond) {
  if constexpr (kChecked) {
    const IntLanes over = (code > kTopCode) & (size <= kInfBits);
    beyond -= over;
    code = over ? kTopCode | IntLanes{} : code;
  }
  if (least > 0) code = (((IntLanes)x > 0) & (code < least)) ? least | IntLanes{} : code;
  code |= ((IntLanes)x >> 16) & 0x8000;
  if constexpr (kChecked) code = size > kInfBits ? kNanCode | IntLanes{} : code;
}

// `size` without its last kBits: at random, or to the nearest and of two to the even one.
template <bool kStochastic, int kBits>
TERRACE_HD void DropBits(const IntLanes& size, const UintLanes& random, IntLanes& code) {
  constexpr int32_t kMask = (1 << kBits) - 1;
  if constexpr (kStochastic)
    code = size + ((IntLanes)random & kMask);
  else
    code = size + (kMask >> 1) + ((size >> kBits) & 1);
  code = (IntLanes)((UintLanes)code >> kBits);
}

struct Bf16Encoder {
  using Code = uint16_t;
  using Numbers = Bf16Numbers;
  static constexpr int32_t kLargest = 0x7f7f0000;
  template <bool kChecked>
  TERRACE_HD void Start(const float*, int64_t, int64_t, int, IntLanes&) {}
  TERRACE_HD void StartRow(int, int, char*) {}

  template <bool kStochastic, bool kChecked>
  TERRACE_HD void Encode(const Lanes& x, const IntLanes& size, const UintLanes& random, int least,
                         IntLanes& code, IntLanes& beyond) const {
    DropBits<kStochastic, 16>(size, random, code);
    FinishHalf<kChecked, 0x7f7f, 0x7fc0>(x, size, least, code, beyond);
  }
};

struct Fp16Encoder {
  using Code = uint16_t;
  using Numbers = Fp16Numbers;
  static constexpr int32_t kLargest = 0x477fe000;  // 65504
  template <bool kChecked>
  TERRACE_HD void Start(const float*, int64_t, int64_t, int, IntLanes&) {}
  TERRACE_HD void StartRow(int, int, char*) {}

  template <bool kStochastic, bool kChecked>
  TERRACE_HD void Encode(const Lanes& x, const IntLanes& size, const UintLanes& random, int least,
                         IntLanes& code, IntLanes& beyond) const {
    constexpr int32_t kLeastNormal = 0x38800000;  // 2^-14: below it, codes are steps of 2^-24
    const IntLanes small_size = size < kLeastNormal ? size : IntLanes{};
    IntLanes small;
    if constexpr (kStochastic)
      RoundToInt<true>((Lanes)small_size * 0x1p24f, random, small);
    else  // one half has steps of 2^-24 too: the sum rounds to them
      small = (IntLanes)((Lanes)small_size + 0.5f) - 0x3f000000;
    DropBits<kStochastic, 13>(size, random, code);
    code -= 112 << 10;
    code = size < kLeastNormal ? small : code;
    FinishHalf<kChecked, 0x7bff, 0x7e00>(x, size, least, code, beyond);
  }
};

}  // namespace terrace
