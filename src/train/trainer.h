// Trains a model as a config says, evaluates it, and tells what happened.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "data/features.h"
#include "model/metrics.h"
#include "train/growth.h"
#include "train/model_state.h"
#include "train/run_config.h"
#include "train/snapshot_taker.h"
#include "train/window_planner.h"

namespace terrace {

struct Evaluation {
  int64_t step = 0;   // batches trained
  int64_t epoch = 0;  // from 1
  double seconds = 0;
  Metrics metrics;
};

struct StageReport {
  std::string name;
  StageTime time;
  int64_t bytes = 0;  // batches, keys, rows or pages that went through it
};

// What happened between the tiers; only with a disk tier.
struct TierReport {
  bool used = false;
  int64_t budget = 0;  // of memory
  int64_t window = 0;  // batches, at most
  WindowStats windows;
  TieredStats rows;            // of all tables
  int64_t metadata_bytes = 0;  // pins and policies
  int64_t disk_memory_bytes = 0;
  DiskStats disk;  // of all tables: totals only
};

// The life of rows; only where a table has rules for it.
struct LifeReport {
  bool used = false;
  int64_t admitted = 0, refused = 0;  // keys of batches; a key counts in each batch it is in
  int64_t expired = 0;                // rows that were due and removed, or started anew
  int64_t admission_bytes = 0;        // memory of keys without a row
};

// A run over time: once a second, in long runs less often.
struct TimePoint {
  double seconds = 0;
  int64_t examples = 0;
  double longest_batch = 0;    // seconds from one batch to the next, since the point before
  int64_t rss = 0;             // bytes
  TieredStats tiers;           // counts since the start
  int64_t rows_in_memory = 0;  // without a disk tier
  int64_t disk_bytes = 0;
};

// What a run did; the summary and the table at the end are made from it.
struct RunReport {
  std::string model_digest;
  bool interrupted = false;
  bool stopped_early = false;
  int64_t examples = 0;  // trained, all epochs
  int64_t batches = 0;
  int64_t epochs = 0;
  double seconds = 0;        // from the first read to the end
  double train_seconds = 0;  // without evaluations
  double train_loss = 0;     // mean over the last epoch, each batch before its update
  double train_auc = 0;      // the same, bucketed
  int64_t skipped_rows = 0;
  int64_t saturated = 0;  // numbers of rows beyond the largest of their codec
  std::vector<Evaluation> evaluations;
  std::vector<StageReport> stages;
  std::string bottleneck;  // a stage's name
  std::string advice;      // what to change, or empty
  int64_t rows = 0;
  int64_t rows_in_memory = 0;
  int64_t row_lookups = 0;
  int64_t rows_created = 0;
  int64_t arena_bytes = 0;
  int64_t index_bytes = 0;
  TierReport tiers;
  LifeReport life;
  SnapshotReport snapshots;
  int64_t resumed_from = -1;     // batch of the snapshot; -1: trained from the start
  int64_t resumed_examples = 0;  // trained before it
  bool grown = false;            // since that snapshot
  GrowthReport growth;
  std::vector<TimePoint> timeline;
  int64_t queue_bytes = 0;
  int64_t reader_bytes = 0;
  int64_t scratch_bytes = 0;
  int64_t process_bytes = 0;  // before the run: code, libraries
  int64_t dense_params = 0;
  int64_t peak_rss = 0;
  int threads = 0;
};

struct RunOptions {
  std::string predictions_path;  // scores of the last evaluation; empty: not written
  bool show_progress = true;
  bool resume = false;           // go on from the last snapshot in snapshot.dir, if there is one
  bool allow_new_slots = false;  // with slots, tables and dims that have come since
  // For tests and comparisons: rows of each table in memory, whatever the budget; another lower
  // tier.
  int64_t memory_rows = 0;
  ModelState::OpenStore open_store = DiskStore::Open;
  std::function<void(int64_t batch)> after_batch;  // may throw
};

// Runs until done, early stopped, or `stop` is set (then the batches under way are finished and
// evaluation is skipped). Throws Error. The caller's thread is the train stage.
RunReport TrainModel(Env& env, const RunConfig& config, const RunOptions& options,
                     const std::atomic<bool>& stop);

}  // namespace terrace
