// One training or evaluation step over a planned batch.
//
// Threads take slices of the batch for the net, then ranges of rows for the update. Sums follow the
// slice tree, each row has one writer: the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/slice_tree.h"
#include "base/workers.h"
#include "data/batch.h"
#include "tier/plan.h"
#include "train/model_state.h"

namespace terrace {

class StepRunner {
 public:
  // All three outlive the runner.
  StepRunner(const RunConfig& config, ModelState* state, Workers* workers);

  // Forward, backward, update. `step` counts batches from 1, `tick` is of train.clock. Rows that
  // are due start anew first. Returns the weighted sum of the log losses before the update. Throws
  // Error(kNumeric), weights and states untouched, if that is not finite.
  double Train(const Batch& batch, const std::vector<TablePlan>& plans, int64_t step,
               uint32_t tick = 0);
  // Forward only. Positions of rows that are due become those of the default row.
  double Evaluate(const Batch& batch, std::vector<TablePlan>* plans, uint32_t tick = 0);
  // Of the last batch.
  std::span<const float> probabilities() const {
    return {probabilities_.data(), static_cast<size_t>(examples_)};
  }
  // Numbers of rows that updates took beyond the largest of their codec.
  int64_t saturated() const;
  int64_t restarted() const;  // rows that were due when they were used
  // Memory of activations and gradients.
  int64_t scratch_bytes() const;

 private:
  // A range of one table's rows, or of the dense parameters (table == -1).
  struct UpdateTask {
    int table;
    int64_t begin;
    int64_t end;
  };

  double ForwardBackward(const Batch& batch, const std::vector<TablePlan>& plans, int64_t step,
                         bool training);
  void RunSlice(const Batch& batch, const std::vector<TablePlan>& plans, int64_t step,
                bool training, int64_t slice, int worker);
  void ListUpdates(const std::vector<TablePlan>& plans);
  void UpdateTableRows(const TablePlan& plan, const UpdateTask& task, int64_t step, int worker);

  // step_life.cc
  void RestartDue(const std::vector<TablePlan>& plans, uint32_t tick);
  void HideDue(std::vector<TablePlan>* plans, uint32_t tick);
  void CountUses(const Batch& batch, const TablePlan& plan, const UpdateTask& task, int worker);
  void EndLives();

  const RunConfig& config_;
  ModelState& state_;
  Workers& workers_;
  Device& device_;
  const SliceShape shape_;

  std::vector<Stream> streams_;                         // by worker
  std::vector<std::unique_ptr<SliceRun>> runs_;         // by worker
  std::vector<Buffer<float>> row_grads_;                // by worker: [kRowBlock, weights]
  std::vector<Buffer<float>> row_scratch_;              // by worker: unpacked rows
  std::vector<int64_t> saturated_;                      // by worker
  std::vector<int64_t> restarted_;                      // by worker
  std::vector<std::vector<std::vector<RowUse>>> uses_;  // by table and worker, of capped tables
  std::vector<Buffer<float>> logit_grads_;              // by worker: [slice length]
  std::vector<Buffer<float>> param_grads_;              // by slice: [param_count]
  Buffer<float> input_grad_;                            // [batch, embedding_width]
  Buffer<float> linear_grad_;                           // [batch]
  Buffer<float> probabilities_;                         // [batch]
  std::vector<double> losses_;                          // by slice
  std::vector<UpdateTask> updates_;
  SliceJoin join_;
  int64_t examples_ = 0;
};

}  // namespace terrace
