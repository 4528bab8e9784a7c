// The plan of a batch for one table: which rows it touches, and who touches each.
#pragma once

#include <cstdint>
#include <span>

#include "base/memory.h"

namespace terrace {

struct TablePlan {
  // Of the batch alone. `row` is a number in this plan.
  Array<uint64_t> row_keys;     // [rows]: distinct keys, in the order of first use
  Array<uint32_t> rows;         // [occurrences]: row of each key; becomes `positions`
  Array<uint8_t> packed_rows;   // the same in two or three bytes each, or empty (PackRows)
  Array<uint32_t> row_offsets;  // [rows + 1]: row r's occurrences in row_bags; training only
  Array<uint32_t> row_bags;     // [occurrences]: bag of each, by row, in example order
  Array<float> scales;          // [occurrences], or empty: all 1. value, or value / bag size
  Array<float> row_scales;      // the same in the order of row_bags, or empty
  // Where the table chooses its keys: how often each row is used, and how many of these uses have a
  // click. Keys that get no row are not among row_keys; in `rows` they are row_keys.size().
  Array<uint32_t> shows;   // [rows] or empty
  Array<uint32_t> clicks;  // [rows] or empty
  bool refused = false;    // there are such keys
  int packed_bytes = 0;    // of an entry of packed_rows
  // Of the tier.
  Array<uint32_t> row_positions;  // [rows]: place in the arena; 0: not in memory yet
  Array<uint32_t> positions;      // [occurrences]: the same of each key, in the memory of `rows`
  int64_t missing = 0;            // rows that are not in memory yet

  size_t occurrences() const;  // of `rows`, packed or not
  int64_t bytes() const;
};

// What a plan is made from: one key group of a batch.
struct PlanInput {
  std::span<const uint64_t> keys;         // [occurrences]
  std::span<const uint32_t> bag_offsets;  // [bags + 1]
  std::span<const float> values;          // [occurrences] or empty
  int slots = 1;                          // bags of an example
  std::span<const uint8_t> mean_slots;    // [slots]: 1 where the slot pools by mean
};

}  // namespace terrace
