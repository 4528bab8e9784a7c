// Makes plans: distinct keys of a batch -> positions, and the inverse index.
//
// Belongs to one thread (the plan stage). Scratch memory is kept from batch to batch.
#pragma once

#include <cstdint>
#include <vector>

#include "tier/key_dedup.h"
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
  MemoryTier* const tier_;
  KeyDedup dedup_;
  std::vector<uint32_t> unique_positions_;  // of an evaluation's distinct keys
};

}  // namespace terrace
