// A model that has grown since its snapshot: by slots, by tables, by a larger dim of tables.
//
// What both models have is carried over: rows as they are, or rewritten where their table is wider;
// of the dense part, parameters with their optimizer's numbers by what they belong to
// (param_map.h). All else starts as in a new model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/snapshot.h"
#include "data/features.h"
#include "table/schema.h"
#include "train/model_state.h"
#include "train/run_config.h"

namespace terrace {

struct GrowthReport {
  struct WiderTable {
    std::string name;
    int from = 0, to = 0;  // dims
    int64_t rows = 0;      // rewritten
  };
  std::vector<std::string> new_slots, new_tables;
  std::vector<WiderTable> wider_tables;
  int64_t carried_params = 0, new_params = 0;  // of the dense part

  // For people; of nothing none.
  std::vector<std::string> Lines() const;
};

// Used by one thread, while a run starts.
class Growth {
 public:
  // CheckResumable found that `now` differs from `saved` by growth alone. The snapshot outlives it.
  Growth(const Snapshot& snapshot, const RunConfig& saved, const RunConfig& now);

  bool IsNew(const std::string& table) const { return OldSchema(table) == nullptr; }
  // What the table starts with. What it returns refers to this object.
  ModelState::SavedRows RowsOf(const std::string& table);
  // `bytes`: the snapshot's file of parameters and optimizer state. Throws Error(kCorruption) if
  // its size is not that of the old model.
  void LoadDense(std::string_view bytes, ModelState* state);

  const GrowthReport& report() const { return report_; }

 private:
  const TableSchema* OldSchema(const std::string& table) const;
  void Rewrite(const TableSchema& from, const TableSchema& to, const DiskOptions& options,
               DiskStore* store, int64_t* rows) const;

  const Snapshot& snapshot_;
  const RunConfig saved_;
  const FeatureSpec old_spec_;
  const std::vector<TableSchema> old_schemas_, schemas_;
  GrowthReport report_;
};

}  // namespace terrace
