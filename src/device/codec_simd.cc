#include "base/random.h"
#include "device/codec_kernels.h"
#include "device/number_encoders.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

TERRACE_HD void CopyFloats(const float* from, int n, float* to) {
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (int i = 0; i < n; i += kLanes) {
    Lanes x;
    LoadLanes(from + BlockStart(i, n), kLanes, x);
    StoreLanes(x, kLanes, false, to + BlockStart(i, n));
  }
}

// The floats behind codes: none or a linear weight, as a rule.
TERRACE_HD void CopyPlain(const float* from, int n, float* to) {
  if (n == 1)
    *to = *from;
  else if (n > 1)
    CopyFloats(from, n, to);
}

// Codes of a block of rows. Returns the numbers beyond the largest; unchecked, whether there are
// numbers that make the codes wrong. kN is the number of codes, or 0: known at run time only.
template <typename Encoder, bool kStochastic, bool kChecked, int kN>
int64_t EncodePart(const RowFormat& format, const RowPart& of, const PackedRows& to_rows,
                   const float* numbers, const uint64_t* words) {
  const RowPart part = of;
  const PackedRows rows = to_rows;
  const int64_t row_numbers = format.numbers;
  const int n = kN != 0 ? kN : part.coded;
  const int least = part.keeps_positive ? 1 : 0;
  const int64_t plain_offset = part.bytes() - 4 * part.plain;
  IntLanes beyond = {};
  IntLanes largest = {};
  Encoder encoder;
  for (int64_t r = 0; r < rows.rows; ++r) {
    char* const to =
        reinterpret_cast<char*>(rows.base) + rows.positions[r] * rows.stride_bytes + part.offset;
    const float* const from = numbers + r * row_numbers + part.first;
    auto* const codes = reinterpret_cast<typename Encoder::Code*>(to);
    const int in_group = static_cast<int>(r % kLanes);
    if (in_group == 0)
      encoder.template Start<kChecked>(from, row_numbers, rows.rows - r, n, largest);
    encoder.StartRow(in_group, n, to);
    for (int i = 0; i < n; i += kLanes) {
      // Checked, each number is seen once, to be counted.
      const int start = kChecked ? i : BlockStart(i, n);
      const int count = BlockCount(kChecked ? n - i : n);
      Lanes x;
      LoadLanes(from + start, count, x);
      const IntLanes size = (IntLanes)x & 0x7fffffff;
      if constexpr (!kChecked && !HasScale(Encoder::Numbers::kCodec))
        largest = size > largest ? size : largest;
      UintLanes random = {};
      if constexpr (kStochastic) RandomLanes(words[r], part.first + start, random);
      IntLanes code;
      encoder.template Encode<kStochastic, kChecked>(x, size, random, least, code, beyond);
      StoreCodes(code, count, codes + start);
    }
    CopyPlain(from + n, part.plain, reinterpret_cast<float*>(to + plain_offset));
  }
  if constexpr (!kChecked) {
    SpreadLargest(largest);
    return largest[0] > Encoder::kLargest;
  }
  int64_t sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += beyond[l];
  return sum;
}

template <typename Numbers, int kN>
void DecodePart(const RowFormat& format, const RowPart& of, const PackedRows& from_rows,
                float* numbers) {
  const RowPart part = of;
  const PackedRows rows = from_rows;
  const int64_t row_numbers = format.numbers;
  const int n = kN != 0 ? kN : part.coded;
  const int64_t plain_offset = part.bytes() - 4 * part.plain;
  for (int64_t r = 0; r < rows.rows; ++r) {
    const char* const from = reinterpret_cast<const char*>(rows.base) +
                             rows.positions[r] * rows.stride_bytes + part.offset;
    float* const to = numbers + r * row_numbers + part.first;
    const Numbers codes(from, n);
    if (n < kLanes) {
      for (int i = 0; i < n; ++i) {
        Vec<float, 1> x;
        codes.template Load<1>(i, x);
        to[i] = x[0];
      }
    } else {
      for (int i = 0; i < n; i += kLanes) {
        const int start = BlockStart(i, n);
        Lanes x;
        codes.template Load<kLanes>(start, x);
        StoreLanes(x, kLanes, false, to + start);
      }
    }
    CopyPlain(reinterpret_cast<const float*>(from + plain_offset), part.plain, to + n);
  }
}

// Straight-line code for the usual vectors, with and without a linear weight.
template <typename Run>
auto ForSize(int n, Run run) {
  switch (n) {
    case 8:
      return run.template operator()<8>();
    case 9:
      return run.template operator()<9>();
    case 16:
      return run.template operator()<16>();
    case 17:
      return run.template operator()<17>();
    case 32:
      return run.template operator()<32>();
    default:
      return run.template operator()<0>();
  }
}

// NaN, Inf and numbers that are too large are rare: looked for in a block of rows at once, and only
// if there is one, packed with care.
template <typename Encoder, bool kStochastic>
int64_t EncodeRounded(const RowFormat& format, const RowPart& part, const PackedRows& rows,
                      const float* numbers, const uint64_t* words) {
  const int64_t unusual = ForSize(part.coded, [&]<int kN>() {
    return EncodePart<Encoder, kStochastic, false, kN>(format, part, rows, numbers, words);
  });
  if (unusual == 0) return 0;
  return EncodePart<Encoder, kStochastic, true, 0>(format, part, rows, numbers, words);
}

template <typename Encoder>
int64_t EncodeAs(const RowFormat& format, const RowPart& part, const PackedRows& rows,
                 const float* numbers, const uint64_t* words) {
  return words != nullptr ? EncodeRounded<Encoder, true>(format, part, rows, numbers, words)
                          : EncodeRounded<Encoder, false>(format, part, rows, numbers, words);
}

template <typename Numbers>
void DecodeAs(const RowFormat& format, const RowPart& part, const PackedRows& rows,
              float* numbers) {
  ForSize(part.coded, [&]<int kN>() { DecodePart<Numbers, kN>(format, part, rows, numbers); });
}

// A part of floats alone. copy(number, n, row): between numbers[number] and the row, n floats.
template <typename Copy>
void ForPlain(const RowFormat& format, const RowPart& part, const PackedRows& of, Copy copy) {
  ForSize(part.plain, [&]<int kN>() {
    const PackedRows rows = of;
    const int n = kN != 0 ? kN : part.plain;
    const int64_t row_numbers = format.numbers;
    std::byte* const first = rows.base + part.offset;
    int64_t number = part.first;
    for (int64_t r = 0; r < rows.rows; ++r, number += row_numbers)
      copy(number, n, reinterpret_cast<float*>(first + rows.positions[r] * rows.stride_bytes));
  });
}

int64_t Encode(const RowFormat& format, const PackedRows& rows, RowParts parts,
               const float* numbers, const uint64_t* words) {
  int64_t beyond = 0;
  for (int p = 0; p < format.part_count; ++p) {
    const RowPart& part = format.parts[p];
    switch (part.codec) {
      case RowCodec::kFp32:
        if (parts == RowParts::kCoded) break;
        ForPlain(format, part, rows,
                 [=](int64_t number, int n, float* row) { CopyFloats(numbers + number, n, row); });
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

void Decode(const RowFormat& format, const PackedRows& rows, RowParts parts, float* numbers) {
  for (int p = 0; p < format.part_count; ++p) {
    const RowPart& part = format.parts[p];
    switch (part.codec) {
      case RowCodec::kFp32:
        if (parts == RowParts::kCoded) break;
        ForPlain(format, part, rows, [=](int64_t number, int n, const float* row) {
          CopyFloats(row, n, numbers + number);
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

void RandomWordsOf(uint64_t seed, uint64_t step, const uint64_t* keys, int64_t rows,
                   uint64_t* words) {
  TERRACE_INDEPENDENT
  for (int64_t r = 0; r < rows; ++r) words[r] = RandomBits(seed, keys[r], step);
}

}  // namespace

const CodecKernels kCodecKernels = {
    .random_words = RandomWordsOf, .decode = Decode, .encode = Encode};

}  // namespace TERRACE_ISA
}  // namespace terrace
