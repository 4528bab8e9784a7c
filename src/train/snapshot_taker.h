// Takes snapshots of a run while it goes on.
//
// Begin copies what is small (the net, the life of tables, what the stages wrote down) and tells
// the row saver that the state of now is wanted; a thread of its own ("save") then brings the rows
// to the stores, links their files into the snapshot and writes the rest. Some time before the next
// snapshot is due it writes changed rows ahead, so that little is left to do at that batch.
//
// Threads: all calls are the train stage's. Failure: a snapshot that fails is told of, and training
// goes on: the one before it stays. Finish throws if the last one failed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "checkpoint/dense_part.h"
#include "checkpoint/snapshot.h"
#include "tier/row_saver.h"
#include "train/model_state.h"
#include "train/run_config.h"
#include "train/work_item.h"

namespace terrace {

struct SnapshotReport {
  int64_t taken = 0, failed = 0;
  int64_t last_batch = 0;
  double seconds = 0, longest_seconds = 0;  // of taking them
  double pause = 0, longest_pause = 0;      // of training, for them: in all, and at one place
  int64_t rows_written = 0;                 // to the stores, for snapshots
  std::string failure;                      // of the last that failed
};

class SnapshotTaker {
 public:
  // All outlive the taker. `lineage` of what the run began with. With `show_progress` failures are
  // told on standard error at once.
  SnapshotTaker(Env& env, const RunConfig& config, ModelState* state,
                std::vector<std::string> lineage, bool show_progress);
  // Abandons what is under way.
  ~SnapshotTaker();

  RowSaver* saver() { return &saver_; }
  // Memory beside the model's, at most.
  int64_t bytes() const;

  // Around each training batch.
  void BeforeTraining(const std::vector<TablePlan>& plans);
  void AfterTraining(int64_t step) EXCLUDES(mu_);
  // The state of now is to be saved. `files`: what else belongs to it, by name.
  struct File {
    std::string name;
    std::string bytes;
  };
  void Begin(SnapshotPoint* point, int64_t examples, std::vector<File> files) EXCLUDES(mu_);
  // Returns when all are taken. Throws if the last one failed.
  void Finish() EXCLUDES(mu_);
  SnapshotReport report() const EXCLUDES(mu_);

 private:
  struct Job {
    SnapshotInfo info;
    std::vector<File> files;
    DensePart dense;
    bool last = false;
  };

  void SaveLoop() EXCLUDES(mu_);
  void Save(const Job& job) EXCLUDES(mu_);
  void Write(const Job& job);
  void FlushAhead() EXCLUDES(mu_);
  bool FlushIsDue(int64_t step) EXCLUDES(mu_);
  void CountPause(double seconds) EXCLUDES(mu_);
  void Fail(const std::string& what, bool last) EXCLUDES(mu_);
  void ReleaseLives();

  Env& env_;
  const RunConfig& config_;
  ModelState& state_;
  const std::vector<std::string> lineage_;
  const bool show_progress_;
  RowSaver saver_;

  // Of the train stage.
  double last_batch_ = 0;
  double batch_seconds_ = 0;  // the mean of the last ones
  double last_begin_ = 0;
  double waited_ = 0;  // in the saver, up to the last batch

  mutable Mutex mu_;
  CondVar changed_;
  std::unique_ptr<Job> job_ GUARDED_BY(mu_);
  bool flush_ GUARDED_BY(mu_) = false;
  bool busy_ GUARDED_BY(mu_) = false;
  bool end_ GUARDED_BY(mu_) = false;
  bool last_failed_ GUARDED_BY(mu_) = false;
  double flushed_per_second_ GUARDED_BY(mu_) = 300'000;  // rows
  SnapshotReport report_ GUARDED_BY(mu_);
  std::jthread thread_;
};

}  // namespace terrace
