// Makes plans: distinct keys of a batch -> positions, and the inverse index.
//
// Belongs to one thread (the plan stage). Scratch memory is kept from batch to batch.
#pragma once

#include <cstdint>
#include <vector>

#include "tier/memory_tier.h"
#include "tier/plan.h"

namespace terrace {

class Planner {
 public:
  explicit Planner(MemoryTier* tier) : tier_(tier) {}

  // For training: unseen keys get rows; the inverse index is built.
  void PlanTrain(const PlanInput& input, TablePlan* plan);
  // For evaluation: absent keys point to the default row; only positions and scales are filled.
  void PlanEval(const PlanInput& input, TablePlan* plan);

 private:
  // Distinct keys of the batch, in order of first use, into unique_keys_; ids_[o] numbers them.
  void Deduplicate(const PlanInput& input);
  void FillScales(const PlanInput& input, TablePlan* plan);

  MemoryTier* const tier_;
  std::vector<uint64_t> unique_keys_;
  std::vector<uint32_t> ids_;          // [occurrences]
  std::vector<uint32_t> dedup_slots_;  // open addressing: 1 + id, 0 if free
};

}  // namespace terrace
