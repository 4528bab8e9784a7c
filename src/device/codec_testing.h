// For tests: rows of one or more parts, packed and unpacked.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "device/codec.h"
#include "device/codec_kernels.h"
#include "device/kernel_testing.h"

namespace terrace {

inline constexpr RowCodec kAllCodecs[] = {RowCodec::kFp32, RowCodec::kFp16, RowCodec::kBf16,
                                          RowCodec::kInt16, RowCodec::kInt8};

inline std::string CodecName(RowCodec codec) {
  const char* const names[] = {"fp32", "fp16", "bf16", "int16", "int8"};
  return names[static_cast<int>(codec)];
}

inline std::vector<const CodecKernels*> AllCodecKernels() {
  std::vector<const CodecKernels*> tables = {&isa_baseline::kCodecKernels};
#if defined(TERRACE_HAVE_X86_ISA)
  if (CurrentIsa() >= IsaLevel::kAvx2) tables.push_back(&isa_avx2::kCodecKernels);
  if (CurrentIsa() >= IsaLevel::kAvx512) tables.push_back(&isa_avx512::kCodecKernels);
#endif
  return tables;
}

inline RowFormat OnePart(RowCodec codec, int vector, int linear = 0, bool keeps_positive = false) {
  RowFormat format;
  format.Add(codec, vector, linear, keeps_positive);
  return format;
}

// Numbers of sizes from 2^-low to 1, of both signs, some 0.
inline std::vector<float> MixedNumbers(int n, uint64_t seed, int low) {
  std::vector<float> numbers = RandomFloats(n, seed);
  for (int i = 0; i < n; ++i) {
    const uint64_t draw = RandomBits(seed, i, 5);
    numbers[i] = draw % 7 == 0 ? 0 : std::ldexp(numbers[i], -static_cast<int>((draw >> 8) % low));
  }
  return numbers;
}

// One row: its bytes, and the numbers that were beyond the largest.
struct Packed {
  std::vector<std::byte> bytes;
  int64_t saturated = 0;

  std::vector<float> Numbers(const RowFormat& format) {
    std::vector<float> numbers(static_cast<size_t>(format.numbers));
    const uint32_t position = 0;
    Stream stream(nullptr);
    DecodeRows(stream, format, {bytes.data(), format.bytes, &position, 1}, RowParts::kAll,
               numbers.data());
    return numbers;
  }
};

// `word`: null to round to the nearest.
inline Packed Pack(const RowFormat& format, const std::vector<float>& numbers,
                   const uint64_t* word) {
  Packed row;
  row.bytes.resize(static_cast<size_t>(format.bytes));
  const uint32_t position = 0;
  Stream stream(nullptr);
  row.saturated = EncodeRows(stream, format, {row.bytes.data(), format.bytes, &position, 1},
                             RowParts::kAll, numbers.data(), word);
  return row;
}

// What a number is after packing.
inline std::vector<float> Rounded(const RowFormat& format, const std::vector<float>& numbers,
                                  const uint64_t* word) {
  return Pack(format, numbers, word).Numbers(format);
}

}  // namespace terrace
