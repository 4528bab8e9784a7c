// Which column of a file feeds which place of an example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/features.h"

namespace terrace {

// Whole numbers below this are common enough in dense columns to have their result at hand.
inline constexpr uint32_t kSmallNumbers = 1024;

struct DenseCell {
  uint32_t column = 0;
  float missing = 0;
  DenseColumn transform;
  std::vector<float> small;  // [kSmallNumbers]: transform of 0, 1, ...; empty if one is not finite
};

struct SlotCell {
  uint32_t column = 0;
  // From this slot on so many of the group have plain cells: one value, hashed as it stands, also
  // if it is empty. 0: this one needs a closer look.
  uint32_t plain_run = 0;
  uint64_t seed = 0;
  char separator = 0;  // 0: one value
  const SlotConfig* config = nullptr;
};

// Constant after construction; not copied, as cells point into `spec`.
struct ColumnPlan {
  // Throws Error(kData) that names `file` if a column is missing or a name occurs twice. Without
  // `labels` theirs is of no interest.
  ColumnPlan(const DataConfig& config, const FeatureSpec& spec,
             const std::vector<std::string>& columns, const std::string& file, bool labels);
  ColumnPlan(const ColumnPlan&) = delete;
  ColumnPlan& operator=(const ColumnPlan&) = delete;

  const FeatureSpec spec;
  const std::vector<std::string> names;
  int64_t label = -1;  // -1: there is none
  int64_t weight = -1;
  int64_t timestamp = -1;
  int64_t group = -1;
  uint64_t group_seed = 0;
  std::vector<DenseCell> dense;
  std::vector<std::vector<SlotCell>> groups;  // in the order of the groups' slots
};

}  // namespace terrace
