// Everything that training changes: the rows of all tables, and the dense parameters with their
// optimizer's state.
//
// Rows are written by the train stage, at positions that the plan stage handed out; the tiers'
// indexes belong to the plan stage. The rest belongs to the train stage.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/workers.h"
#include "data/features.h"
#include "device/device.h"
#include "model/model.h"
#include "table/admission.h"
#include "table/table_life.h"
#include "tier/memory_tier.h"
#include "tier/tiered_table.h"
#include "train/run_config.h"

namespace terrace {

struct ModelState {
  ModelState(const RunConfig& config, const FeatureSpec& spec, Device* device);

  // A hash of every row (all its bytes) that is not due and of the dense part with its optimizer:
  // the same for the same model, wherever rows live. When no stage runs.
  struct Summary {
    std::string digest;  // 32 hex digits
    int64_t rows = 0;
  };
  Summary Summarise(Workers* workers) const;
  // Rows that exist, those too that are due and still there.
  int64_t rows() const;
  int64_t dense_bytes() const;  // parameters with their optimizer's state

  // Puts a disk tier below every table, in directories of its path. `open` opens a store.
  using OpenStore =
      std::function<std::unique_ptr<DiskStore>(const std::string& dir, const DiskOptions& options)>;
  // What a table starts with: all that the store in `dir` has, or what `rewrite` puts into the
  // empty store, which has these options; without both no row.
  struct SavedRows {
    std::string dir;
    std::function<void(const DiskOptions& options, DiskStore* store)> rewrite;
  };
  using SavedRowsOf = std::function<SavedRows(const std::string& table)>;
  // `from`: null: all tables start empty.
  void OpenDiskTier(const TiersConfig& config, Env* env, const OpenStore& open,
                    const SavedRowsOf& from);
  // The same for reading alone: the rows are those of the snapshot, and stay there. `from`: the
  // directory of a table's store.
  using StorePath = std::function<std::string(const std::string& table)>;
  void ReadDiskTier(const TiersConfig& config, Env* env, const StorePath& from);
  // Brings all rows of a snapshot to memory.
  void ReadRows(Env* env, const StorePath& from);
  // Puts a store behind every table in memory, in directories of `dir`, for snapshots.
  void OpenSaveStores(const std::string& dir, int64_t memory, Env* env, const OpenStore& open,
                      const SavedRowsOf& from);
  // Brings all rows to memory.
  void LoadRows(size_t table, DiskStore* store);
  // What table `t` keeps its rows in, beside memory; null: nothing.
  DiskStore* store(size_t table) const;
  // Asked for rows of table `t` that are due, nor is any older value of them of use; null: none.
  std::function<RowTest()> UnseenRows(size_t table) const;

  std::unique_ptr<Model> model;
  std::vector<std::unique_ptr<MemoryTier>> tables;  // by key group
  // Null where nothing is counted. Merges of the disk tier ask them: they outlive `tiered`.
  std::vector<std::unique_ptr<TableLife>> lives;
  std::vector<std::unique_ptr<TieredTable>> tiered;     // the same with their disk tier, or empty
  std::vector<std::unique_ptr<DiskStore>> save_stores;  // behind tables in memory alone, or empty
  std::vector<std::unique_ptr<Admission>> admissions;  // of the plan stage; null: all keys get rows
  Buffer<float> params;
  Buffer<float> dense_state;  // [state_per_param][param_count]

  // Where each key group's vectors stand in the model's input.
  std::vector<int64_t> group_column;
  // For each group: which of its slots pool by mean.
  std::vector<std::vector<uint8_t>> mean_slots;

 private:
  DiskOptions StoreOptions(size_t table, Env* env, int64_t memory) const;
};

}  // namespace terrace
