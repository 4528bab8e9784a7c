#include "device/codec.h"

#include "base/error.h"
#include "device/codec_kernels.h"

namespace terrace {

void RowFormat::Add(RowCodec codec, int vector, int linear, bool keeps_positive) {
  TERRACE_CHECK(part_count < kMaxParts);
  RowPart& part = parts[part_count++];
  part.codec = HasScale(codec) && vector == 0 ? RowCodec::kFp32 : codec;
  part.coded = part.codec == RowCodec::kFp32 ? 0 : HasScale(codec) ? vector : vector + linear;
  part.plain = vector + linear - part.coded;
  part.first = numbers;
  part.offset = bytes;
  part.keeps_positive = keeps_positive;
  numbers += part.numbers();
  bytes += part.bytes();
  packed = packed || part.coded > 0;
}

void RandomWords(Stream&, uint64_t seed, uint64_t step, const uint64_t* keys, int64_t rows,
                 uint64_t* words) {
  TERRACE_ISA_TABLE(kCodecKernels).random_words(seed, step, keys, rows, words);
}

void DecodeRows(Stream&, const RowFormat& format, const PackedRows& rows, RowParts parts,
                float* numbers) {
  TERRACE_ISA_TABLE(kCodecKernels).decode(format, rows, parts, numbers);
}

int64_t EncodeRows(Stream&, const RowFormat& format, const PackedRows& rows, RowParts parts,
                   const float* numbers, const uint64_t* words) {
  return TERRACE_ISA_TABLE(kCodecKernels).encode(format, rows, parts, numbers, words);
}

}  // namespace terrace
