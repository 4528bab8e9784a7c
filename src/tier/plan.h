// The plan of a batch for one table: which rows it touches, and who touches each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

struct TablePlan {
  std::vector<uint32_t> positions;         // [occurrences]: the arena position of each key
  std::vector<uint32_t> unique_positions;  // [rows]: distinct positions, in order of first use
  std::vector<uint32_t> row_offsets;       // [rows + 1]: row r's occurrences in row_bags
  std::vector<uint32_t> row_bags;          // [occurrences]: bag of each, by row, in example order
  std::vector<float> scales;      // [occurrences], or empty: all 1. value, or value / bag size
  std::vector<float> row_scales;  // the same in the order of row_bags, or empty
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
