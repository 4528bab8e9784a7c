// The shapes of models that benchmarks train: a DeepFM over one table.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace terrace {

struct BenchShape {
  int slots;
  int values;  // keys a slot
  int dense;
  int dim;
  const char* hidden;
};

// criteo, ads100 or ads500; throws Error(kUsage) for another name.
const BenchShape& ShapeOf(const std::string& name);

// Batches of 4,096 on all cores, no evaluation. `sets` are key=value; `program` is named by errors.
RunConfig ShapeConfig(const BenchShape& shape, const std::vector<std::string>& sets,
                      const std::string& program);

}  // namespace terrace
