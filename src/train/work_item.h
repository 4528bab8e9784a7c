// A batch on its way through the stages. Plain data; owned by one stage at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "tier/plan.h"

namespace terrace {

struct WorkItem {
  enum class Kind {
    kTrain,
    kEval,
    kEvalEnd,  // no batch: the evaluation is complete
  };
  Kind kind = Kind::kTrain;
  bool last_eval = false;  // of the run
  int64_t step = 0;        // training batches up to here, this one included
  int64_t epoch = 0;
  uint32_t tick = 0;     // of train.clock; never decreases
  double progress = -1;  // of the whole run's input, 0..1; -1: unknown
  uint64_t number = 0;   // of all items, in stream order
  Batch batch;
  std::vector<TablePlan> plans;

  int64_t bytes() const {
    int64_t sum = BatchBytes(batch);
    for (const TablePlan& plan : plans) sum += plan.bytes();
    return sum;
  }
};

}  // namespace terrace
