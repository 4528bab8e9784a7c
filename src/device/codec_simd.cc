#include "device/codec_kernels.h"
#include "device/lanes.h"
#include "device/packed_numbers.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

typedef int32_t IntLanes __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef uint32_t UintLanes __attribute__((vector_size(kLanes * sizeof(uint32_t))));

constexpr int32_t kInfBits = 0x7f800000;
constexpr float kLeastScale = 0x1p-126f;      // a smaller one would be imprecise
constexpr int32_t kLargestBits = 0x7f7ffffe;  // its codes times its scale are finite

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

// The share of a step from which on a number is rounded up, in (0, 1]: a number that is a code
// stays.
template <bool kStochastic>
TERRACE_HD void Threshold(const UintLanes& random, Lanes& threshold) {
  if constexpr (kStochastic) {
    const IntLanes upper = (IntLanes)(random >> 8) + 1;
    threshold = __builtin_convertvector(upper, Lanes) * 0x1p-24f;
  } else {
    threshold = Lanes{} + 0.5f;
  }
}

// The integer below or above y. Not floor(y + u): that sum is rounded, so a number that is a code
// already would drift up.
template <bool kStochastic>
TERRACE_HD void RoundToInt(const Lanes& y, const UintLanes& random, IntLanes& code) {
  code = __builtin_convertvector(y, IntLanes);  // towards 0
  code += __builtin_convertvector(code, Lanes) > y;
  Lanes threshold;
  Threshold<kStochastic>(random, threshold);
  code -= y - __builtin_convertvector(code, Lanes) >= threshold;
}

TERRACE_HD int32_t LargestOfLanes(const IntLanes& v) {
  IntLanes a = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  a = a > v ? a : v;
  const int32_t x = a[0] > a[1] ? a[0] : a[1];
  const int32_t y = a[2] > a[3] ? a[2] : a[3];
  return x > y ? x : y;
}

// Writes the first n codes.
template <typename Code>
TERRACE_HD void StoreCodes(const IntLanes& codes, int n, Code* to) {
  typedef Code Narrow __attribute__((vector_size(kLanes * sizeof(Code))));
  const Narrow narrow = __builtin_convertvector(codes, Narrow);
  if (n == kLanes) {
    __builtin_memcpy(to, &narrow, sizeof(narrow));
    return;
  }
  for (int l = 0; l < n; ++l) to[l] = narrow[l];
}

// The encoders: made for a row's part (Start), they turn lanes of floats into codes. `least` is
// what the code of a positive number is at least.
template <typename CodeType>
struct IntEncoder {
  using Code = CodeType;
  using Numbers = IntNumbers<Code>;
  float scale = 0;

  TERRACE_HD void Start(const float* x, int n, char* to) {
    IntLanes largest = {};
    for (int i = 0; i < n; i += kLanes) {
      Lanes part;
      LoadLanes(x + i, n - i < kLanes ? n - i : kLanes, part);
      // Sizes of floats are in the order of their bits.
      const IntLanes size = (IntLanes)part & 0x7fffffff;
      const IntLanes finite = size < kInfBits ? size : IntLanes{};
      largest = finite > largest ? finite : largest;
    }
    int32_t bits = LargestOfLanes(largest);
    bits = bits > kLargestBits ? kLargestBits : bits;
    scale = __builtin_bit_cast(float, bits) / Numbers::kTop;
    scale = scale < kLeastScale ? kLeastScale : scale;
    __builtin_memcpy(to + CodesBytes(Numbers::kCodec, n), &scale, sizeof(scale));
  }

  template <bool kStochastic>
  TERRACE_HD void Encode(const Lanes& x, const UintLanes& random, int least, IntLanes& code,
                         IntLanes& beyond) const {
    constexpr float kTop = Numbers::kTop;
    const IntLanes nan = x != x;
    Lanes y = x / scale;
    y = y > kTop ? Lanes{} + kTop : y;  // Inf, or the last bit of the quotient
    y = y < -kTop ? Lanes{} - kTop : y;
    y = nan ? Lanes{} : y;
    RoundToInt<kStochastic>(y, random, code);
    code = ((x > 0) & (code < least)) ? least | IntLanes{} : code;
    code = nan ? Numbers::kNan | IntLanes{} : code;
    beyond -= ((IntLanes)x & 0x7fffffff) == kInfBits;
  }
};

// What the encoders of 16 bits share: sign, largest number, NaN.
template <int32_t kTopCode, int32_t kNanCode>
TERRACE_HD void FinishHalf(const Lanes& x, const IntLanes& size, int least, IntLanes& code,
                           IntLanes& beyond) {
  const IntLanes nan = size > kInfBits;
  const IntLanes over = (code > kTopCode) & ~nan;
  beyond -= over;
  code = over ? kTopCode | IntLanes{} : code;
  code = ((x > 0) & (code < least)) ? least | IntLanes{} : code;
  code |= ((IntLanes)x >> 16) & 0x8000;
  code = nan ? kNanCode | IntLanes{} : code;
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
  TERRACE_HD void Start(const float*, int, char*) {}

  template <bool kStochastic>
  TERRACE_HD void Encode(const Lanes& x, const UintLanes& random, int least, IntLanes& code,
                         IntLanes& beyond) const {
    const IntLanes size = (IntLanes)x & 0x7fffffff;
    DropBits<kStochastic, 16>(size, random, code);
    FinishHalf<0x7f7f, 0x7fc0>(x, size, least, code, beyond);
  }
};

struct Fp16Encoder {
  using Code = uint16_t;
  using Numbers = Fp16Numbers;
  TERRACE_HD void Start(const float*, int, char*) {}

  template <bool kStochastic>
  TERRACE_HD void Encode(const Lanes& x, const UintLanes& random, int least, IntLanes& code,
                         IntLanes& beyond) const {
    constexpr int32_t kLeastNormal = 0x38800000;  // 2^-14: below it, codes are steps of 2^-24
    const IntLanes size = (IntLanes)x & 0x7fffffff;
    const IntLanes small_size = size < kLeastNormal ? size : IntLanes{};
    IntLanes small;
    if constexpr (kStochastic)
      RoundToInt<true>((Lanes)small_size * 0x1p24f, random, small);
    else  // one half has steps of 2^-24 too: the sum rounds to them
      small = (IntLanes)((Lanes)small_size + 0.5f) - 0x3f000000;
    DropBits<kStochastic, 13>(size, random, code);
    code -= 112 << 10;
    code = size < kLeastNormal ? small : code;
    FinishHalf<0x7bff, 0x7e00>(x, size, least, code, beyond);
  }
};

// kN is the number of codes, or 0: known at run time only.
template <typename Encoder, bool kStochastic, int kN>
int64_t EncodePart(const RowFormat& format, const RowPart& part, const PackedRows& rows,
                   const float* numbers, const uint64_t* words) {
  const int n = kN != 0 ? kN : part.coded;
  const int least = part.keeps_positive ? 1 : 0;
  const int64_t plain_offset = part.bytes() - 4 * part.plain;
  IntLanes beyond = {};
  for (int64_t r = 0; r < rows.rows; ++r) {
    char* const to =
        reinterpret_cast<char*>(rows.base) + rows.positions[r] * rows.stride_bytes + part.offset;
    const float* const from = numbers + r * format.numbers + part.first;
    auto* const codes = reinterpret_cast<typename Encoder::Code*>(to);
    Encoder encoder;
    encoder.Start(from, n, to);
    for (int i = 0; i < n; i += kLanes) {
      const int count = n - i < kLanes ? n - i : kLanes;
      Lanes x;
      IntLanes code;
      UintLanes random = {};
      LoadLanes(from + i, count, x);
      if constexpr (kStochastic) RandomLanes(words[r], part.first + i, random);
      encoder.template Encode<kStochastic>(x, random, least, code, beyond);
      StoreCodes(code, count, codes + i);
    }
    auto* const plain = reinterpret_cast<float*>(to + plain_offset);
    for (int i = 0; i < part.plain; ++i) plain[i] = from[n + i];
  }
  int64_t sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += beyond[l];
  return sum;
}

template <typename Numbers, int kN>
void DecodePart(const RowFormat& format, const RowPart& part, const PackedRows& rows,
                float* numbers) {
  const int n = kN != 0 ? kN : part.coded;
  const int64_t plain_offset = part.bytes() - 4 * part.plain;
  for (int64_t r = 0; r < rows.rows; ++r) {
    const char* const from = reinterpret_cast<const char*>(rows.base) +
                             rows.positions[r] * rows.stride_bytes + part.offset;
    float* const to = numbers + r * format.numbers + part.first;
    const Numbers codes(from, n);
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      Lanes x;
      codes.template Load<kLanes>(i, x);
      StoreLanes(x, kLanes, false, to + i);
    }
    for (; i < n; ++i) {
      Vec<float, 1> x;
      codes.template Load<1>(i, x);
      to[i] = x[0];
    }
    const auto* const plain = reinterpret_cast<const float*>(from + plain_offset);
    for (int p = 0; p < part.plain; ++p) to[n + p] = plain[p];
  }
}

// Straight-line code for the usual vectors.
template <typename Run>
auto ForSize(int coded, Run run) {
  switch (coded) {
    case 8:
      return run.template operator()<8>();
    case 16:
      return run.template operator()<16>();
    case 32:
      return run.template operator()<32>();
    default:
      return run.template operator()<0>();
  }
}

template <typename Encoder>
int64_t EncodeAs(const RowFormat& format, const RowPart& part, const PackedRows& rows,
                 const float* numbers, const uint64_t* words) {
  return ForSize(part.coded, [&]<int kN>() {
    return words != nullptr ? EncodePart<Encoder, true, kN>(format, part, rows, numbers, words)
                            : EncodePart<Encoder, false, kN>(format, part, rows, numbers, words);
  });
}

template <typename Numbers>
void DecodeAs(const RowFormat& format, const RowPart& part, const PackedRows& rows,
              float* numbers) {
  ForSize(part.coded, [&]<int kN>() { DecodePart<Numbers, kN>(format, part, rows, numbers); });
}

// A part of floats alone.
template <typename Move>
void ForPlain(const RowFormat& format, const RowPart& part, const PackedRows& rows, Move move) {
  for (int64_t r = 0; r < rows.rows; ++r)
    move(r * format.numbers + part.first,
         reinterpret_cast<float*>(rows.base + rows.positions[r] * rows.stride_bytes + part.offset));
}

int64_t Encode(const RowFormat& format, const PackedRows& rows, const float* numbers,
               const uint64_t* words) {
  int64_t beyond = 0;
  for (int p = 0; p < format.part_count; ++p) {
    const RowPart& part = format.parts[p];
    switch (part.codec) {
      case RowCodec::kFp32:
        ForPlain(format, part, rows, [&](int64_t first, float* to) {
          for (int i = 0; i < part.plain; ++i) to[i] = numbers[first + i];
        });
        break;
      case RowCodec::kFp16:
        beyond += EncodeAs<Fp16Encoder>(format, part, rows, numbers, words);
        break;
      case RowCodec::kBf16:
        beyond += EncodeAs<Bf16Encoder>(format, part, rows, numbers, words);
        break;
      case RowCodec::kInt16:
        beyond += EncodeAs<IntEncoder<int16_t>>(format, part, rows, numbers, words);
        break;
      case RowCodec::kInt8:
        beyond += EncodeAs<IntEncoder<int8_t>>(format, part, rows, numbers, words);
        break;
    }
  }
  return beyond;
}

void Decode(const RowFormat& format, const PackedRows& rows, float* numbers) {
  for (int p = 0; p < format.part_count; ++p) {
    const RowPart& part = format.parts[p];
    switch (part.codec) {
      case RowCodec::kFp32:
        ForPlain(format, part, rows, [&](int64_t first, const float* from) {
          for (int i = 0; i < part.plain; ++i) numbers[first + i] = from[i];
        });
        break;
      case RowCodec::kFp16:
        DecodeAs<Fp16Numbers>(format, part, rows, numbers);
        break;
      case RowCodec::kBf16:
        DecodeAs<Bf16Numbers>(format, part, rows, numbers);
        break;
      case RowCodec::kInt16:
        DecodeAs<IntNumbers<int16_t>>(format, part, rows, numbers);
        break;
      case RowCodec::kInt8:
        DecodeAs<IntNumbers<int8_t>>(format, part, rows, numbers);
        break;
    }
  }
}

}  // namespace

const CodecKernels kCodecKernels = {.decode = Decode, .encode = Encode};

}  // namespace TERRACE_ISA
}  // namespace terrace
