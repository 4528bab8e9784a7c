// The two sparse kernels of a training step: gather + pool rows, and sum each row's gradient.
//
// Both see positions in an arena, never keys. Position 0 is the default row (all zero): absent keys
// point to it, and it gets no gradient.
#pragma once

#include <cstdint>

#include "device/codec.h"
#include "device/device.h"

namespace terrace {

// A table's arena as kernels see it. Row p starts at base + p * stride_bytes and begins with its
// weights, a RowPart of `codec`: `dim` numbers of vector, then `linear` (0 or 1) of linear weight.
struct ArenaView {
  std::byte* base = nullptr;
  int64_t stride_bytes = 0;
  int dim = 0;
  int linear = 0;
  RowCodec codec = RowCodec::kFp32;
};

// Examples [first, last) of one key group.
struct GatherArgs {
  ArenaView arena;
  int slots = 0;
  int64_t first = 0;
  int64_t last = 0;
  const uint32_t* bag_offsets = nullptr;  // [examples * slots + 1]
  const uint32_t* positions = nullptr;    // [occurrences]
  const float* scales = nullptr;          // [occurrences], or null: all 1
  // Out: vector of (example e, slot j) to pooled.row(e - first) + j * dim; pooled rows are summed
  // in cell order. An empty bag gives zeros.
  Matrix pooled;
  // Out: the linear weights of the whole example are *added* to linear[e - first]. Null if linear
  // == 0.
  float* linear = nullptr;
};
void GatherPool(Stream& stream, const GatherArgs& args);

// Rows of an arena that will be needed soon.
struct RowPrefetch {
  const std::byte* base = nullptr;  // null: none
  int64_t stride_bytes = 0;
  int64_t row_bytes = 0;                // from the start of a row
  const uint32_t* positions = nullptr;  // [rows]
};

// The gradient of rows [first, last) of a plan, each summed over its occurrences along the slice
// tree (base/slice_tree.h).
struct RowGradArgs {
  int dim = 0;
  int linear = 0;
  int slots = 0;
  int64_t first = 0;
  int64_t last = 0;
  const uint32_t* row_offsets = nullptr;  // [rows + 1]: into bags
  const uint32_t* bags = nullptr;         // [occurrences], by row, in example order
  const float* scales = nullptr;          // [occurrences], same order, or null: all 1
  int64_t slice_examples = 1;             // examples a slice
  ConstMatrix pooled_grad;                // [examples, >= slots * dim], by example of the batch
  const float* linear_grad = nullptr;     // [examples], or null if linear == 0
  float* out = nullptr;                   // [last - first, dim + linear]
  // The rows that the sums will be applied to, if they are to come into the cache meanwhile.
  RowPrefetch prefetch;
};
void SumRowGradients(Stream& stream, const RowGradArgs& args);

}  // namespace terrace
