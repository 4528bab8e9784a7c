// Makes plans, in two steps: what is known from the batch alone, which any number of threads may do
// for different batches, and the rows' places in a tier, batch after batch.
#pragma once

#include <cstdint>
#include <span>

#include "tier/key_dedup.h"
#include "tier/memory_tier.h"
#include "tier/plan.h"

namespace terrace {

// The first step. Belongs to one thread; scratch memory is kept from batch to batch.
class Planner {
 public:
  // The distinct keys, the row of each occurrence, scales.
  void PlanKeys(const PlanInput& input, TablePlan* plan);
  // With LinkRows.
  void PlanTrain(const PlanInput& input, TablePlan* plan);

  int64_t scratch_bytes() const { return dedup_.bytes(); }

 private:
  KeyDedup dedup_;
};

// Fills `shows`, and from the examples' labels `clicks`: a label above one half is a click.
void CountUses(const PlanInput& input, std::span<const float> labels, TablePlan* plan);
// Only rows r with keep[r] stay in the plan; the others' keys will point to the default row. Before
// LinkRows.
void KeepRows(std::span<const uint8_t> keep, TablePlan* plan);

// While a plan waits: `rows` moves to fewer bytes, where its numbers are small enough, and its
// memory may be used for another plan. UnpackRows fills it again.
void PackRows(TablePlan* plan);
void UnpackRows(TablePlan* plan);

// The inverse index: each row's occurrences, in example order. `rows`: how many the plan has.
// Before FillPositions.
void LinkRows(std::span<const uint32_t> bag_offsets, size_t rows, TablePlan* plan);

// The second step. Keys that were not seen before get rows.
void PlaceRows(MemoryTier* tier, TablePlan* plan);
// Absent keys point to the default row.
void FindRows(const MemoryTier& tier, TablePlan* plan);
// What both end with: row_positions, and the occurrences' rows become their positions.
void FillPositions(TablePlan* plan);

}  // namespace terrace
