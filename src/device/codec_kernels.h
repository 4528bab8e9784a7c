// The CPU's kernels behind codec.h, one table for each instruction-set level.
#pragma once

#include "base/cpu.h"
#include "device/codec.h"

namespace terrace {

struct CodecKernels {
  void (*random_words)(uint64_t seed, uint64_t step, const uint64_t* keys, int64_t rows,
                       uint64_t* words);
  void (*decode)(const RowFormat&, const PackedRows&, RowParts, float* numbers);
  int64_t (*encode)(const RowFormat&, const PackedRows&, RowParts, const float* numbers,
                    const uint64_t* words);
};
TERRACE_DECLARE_ISA_TABLE(CodecKernels, kCodecKernels)

}  // namespace terrace
