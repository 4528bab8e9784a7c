// How the numbers of a row are packed into bytes, and rows packed and unpacked.
//
//   fp32        as they are
//   fp16, bf16  each by itself
//   int8, int16 a number is code * scale; the scale is max|x| / 127 (32767), one a part
//
// Rounding is to the nearest code, or stochastic: up or down at random, so that the mean is the
// number itself and updates smaller than a step are not lost. NaN stays NaN. What is beyond the
// largest number of a codec becomes that number, and is counted: Inf, and in fp16 beyond 65504.
// All functions give the same bits at every instruction-set level. Threads: any, on their own rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.h"
#include "device/kernel_macros.h"

namespace terrace {

enum class RowCodec { kFp32, kFp16, kBf16, kInt16, kInt8 };
enum class Rounding { kStochastic, kNearest };

TERRACE_HD constexpr int CodeBytes(RowCodec codec) {
  return codec == RowCodec::kFp32 ? 4 : codec == RowCodec::kInt8 ? 1 : 2;
}
TERRACE_HD constexpr bool HasScale(RowCodec codec) {
  return codec == RowCodec::kInt16 || codec == RowCodec::kInt8;
}
// Bytes of `coded` codes; what follows them stands on a multiple of 4.
TERRACE_HD constexpr int CodesBytes(RowCodec codec, int coded) {
  return (CodeBytes(codec) * coded + 3) / 4 * 4;
}

// Consecutive numbers of a row with one codec: codes, then the scale, then plain floats.
struct RowPart {
  RowCodec codec = RowCodec::kFp32;
  int coded = 0;   // numbers that are codes; fp32 has none
  int plain = 0;   // numbers behind them that are floats
  int first = 0;   // the numbers of the row before this part
  int offset = 0;  // bytes of the row before this part, a multiple of 4
  // A positive number does not become 0: a sum of squares that an optimizer divides by.
  bool keeps_positive = false;

  TERRACE_HD int numbers() const { return coded + plain; }
  TERRACE_HD int bytes() const {
    return CodesBytes(codec, coded) + 4 * (plain + (coded > 0 && HasScale(codec) ? 1 : 0));
  }
};

// A row, part by part. Unpacked it is `numbers` floats.
struct RowFormat {
  static constexpr int kMaxParts = 3;  // weights and up to two of optimizer state

  RowPart parts[kMaxParts];
  int part_count = 0;
  int numbers = 0;
  int bytes = 0;        // a multiple of 4
  bool packed = false;  // not fp32 alone: rows have to be unpacked to be computed with

  // Adds a part: `vector` numbers of one kind, then `linear` ones of another size, which an integer
  // codec leaves as floats: one scale would hurt both.
  void Add(RowCodec codec, int vector, int linear, bool keeps_positive);
};

// Row r is at base + positions[r] * stride_bytes.
struct PackedRows {
  std::byte* base = nullptr;
  int64_t stride_bytes = 0;
  const uint32_t* positions = nullptr;  // [rows]
  int64_t rows = 0;
};

// Words for EncodeRows, of rows that are told apart by their keys: RandomBits(seed, keys[r], step).
void RandomWords(Stream& stream, uint64_t seed, uint64_t step, const uint64_t* keys, int64_t rows,
                 uint64_t* words);

// Parts of floats alone need not be copied out of a row to be computed with, nor back.
enum class RowParts { kAll, kCoded };

// numbers: [rows, format.numbers]; those of parts that are left out stay as they are.
void DecodeRows(Stream& stream, const RowFormat& format, const PackedRows& rows, RowParts parts,
                float* numbers);

// Rounds by the random bits of `words` ([rows]; a number takes its own from its row's word), to the
// nearest if null. Padding is left as it is. Returns how many numbers were beyond the largest.
[[nodiscard]] int64_t EncodeRows(Stream& stream, const RowFormat& format, const PackedRows& rows,
                                 RowParts parts, const float* numbers, const uint64_t* words);

}  // namespace terrace
