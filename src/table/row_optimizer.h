// Applies gradients to rows in place. One writer a row: the caller splits rows between threads.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "table/schema.h"

namespace terrace {

struct RowUpdateArgs {
  std::byte* base = nullptr;  // arena
  int64_t stride_bytes = 0;
  const uint32_t* positions = nullptr;  // [rows]; none is 0 (the default row is never updated)
  float* grads = nullptr;  // [rows, weights]; scratch: l2 and clipping are applied in it
  int64_t rows = 0;
  double lr = 0;     // the table's rate times the schedule's factor
  int64_t step = 0;  // batches so far, from 1 (Adam's bias correction, random bits of codecs)
  // Packed tables: [RowScratchFloats(layout)], and in front of each row in the arena is its key.
  float* scratch = nullptr;
};
// Returns how many numbers were beyond the largest of their codec.
int64_t UpdateRows(Stream& stream, const TableSchema& schema, const RowUpdateArgs& args);

// What SumRowGradients prefetches of rows that UpdateRows will get.
RowPrefetch RowsToUpdate(const RowLayout& layout, const std::byte* base, const uint32_t* positions);

// Of one thread that updates rows; 0 if they are not packed.
int64_t RowScratchFloats(const RowLayout& layout);

}  // namespace terrace
