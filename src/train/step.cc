#include "train/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "device/dense_ops.h"
#include "device/embedding_ops.h"
#include "model/loss.h"
#include "table/row_optimizer.h"

namespace terrace {
namespace {

// Rows whose gradients are summed before they are applied: their block stays in the first cache.
constexpr int64_t kRowBlock = 256;
// Occurrences, and dense parameters, that make a task for a thread.
constexpr int64_t kTaskOccurrences = 16 << 10;
constexpr int64_t kTaskParams = 32 << 10;

}  // namespace

StepRunner::StepRunner(const RunConfig& config, ModelState* state, Workers* workers)
    : config_(config),
      state_(*state),
      workers_(*workers),
      device_(CpuDevice()),
      shape_(SliceShape::For(config.train.batch, config.train.slices)),
      join_(0) {
  const Model& model = *state_.model;
  const int64_t slices = shape_.Count(config.train.batch);
  int64_t widest_row = 0;
  int64_t scratch = 0;
  for (const auto& table : state_.tables) {
    widest_row = std::max<int64_t>(widest_row, table->schema().layout.weights);
    scratch = std::max(scratch, RowScratchFloats(table->schema().layout));
  }
  saturated_.resize(static_cast<size_t>(workers_.threads()));
  restarted_.resize(static_cast<size_t>(workers_.threads()));
  uses_.resize(state_.tables.size());
  for (auto& of_table : uses_) of_table.resize(static_cast<size_t>(workers_.threads()));
  for (int w = 0; w < workers_.threads(); ++w) {
    streams_.emplace_back(&device_);
    runs_.push_back(model.NewRun(shape_.length));
    row_grads_.emplace_back(&device_, kRowBlock * widest_row);
    row_scratch_.emplace_back(&device_, scratch);
    logit_grads_.emplace_back(&device_, shape_.length);
  }
  for (int64_t s = 0; s < slices; ++s) param_grads_.emplace_back(&device_, model.param_count());
  input_grad_ = Buffer<float>(&device_, config.train.batch * model.embedding_width());
  linear_grad_ = Buffer<float>(&device_, config.train.batch);
  probabilities_ = Buffer<float>(&device_, config.train.batch);
  losses_.resize(slices);
}

void StepRunner::RunSlice(const Batch& batch, const std::vector<TablePlan>& plans, int64_t step,
                          bool training, int64_t slice, int worker) {
  const int64_t first = shape_.Begin(slice);
  const int64_t last = shape_.End(slice, batch.examples);
  const int64_t rows = last - first;
  const Model& model = *state_.model;
  Stream& stream = streams_[worker];
  SliceRun& run = *runs_[worker];
  run.Start(&stream, rows);

  const Matrix input = run.input();
  if (run.linear() != nullptr) std::memset(run.linear(), 0, rows * sizeof(float));
  for (size_t g = 0; g < plans.size(); ++g) {
    const RowLayout& layout = state_.tables[g]->schema().layout;
    GatherArgs gather;
    gather.arena = layout.View(state_.tables[g]->base());
    gather.slots = batch.groups[g].slots;
    gather.first = first;
    gather.last = last;
    gather.bag_offsets = batch.groups[g].offsets.data();
    gather.positions = plans[g].positions.data();
    gather.scales = plans[g].scales.empty() ? nullptr : plans[g].scales.data();
    gather.pooled = input.Columns(state_.group_column[g], int64_t{gather.slots} * layout.dim);
    gather.linear = layout.linear != 0 ? run.linear() : nullptr;
    GatherPool(stream, gather);
  }
  if (batch.dense_columns > 0) {
    const Matrix dense = input.Columns(model.embedding_width(), batch.dense_columns);
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(dense.row(r), batch.dense.data() + (first + r) * batch.dense_columns,
                  batch.dense_columns * sizeof(float));
  }

  run.Forward(
      state_.params.data(),
      {training, RandomBits(static_cast<uint64_t>(config_.seed), static_cast<uint64_t>(step), 7),
       first});
  LossArgs loss;
  loss.rows = rows;
  loss.logits = run.logits();
  loss.labels = batch.labels.data() + first;
  loss.weights = batch.weights.empty() ? nullptr : batch.weights.data() + first;
  loss.grad_scale = 1.0f / static_cast<float>(batch.examples);
  loss.probabilities = probabilities_.data() + first;
  loss.logit_grad = training ? logit_grads_[worker].data() : nullptr;
  losses_[slice] = LogLoss(stream, loss);
  if (!training) return;

  const int64_t width = model.embedding_width();
  run.Backward(loss.logit_grad, Matrix{input_grad_.data() + first * width, rows, width, width},
               linear_grad_.data() + first, param_grads_[slice].data());
  join_.Arrive(slice, [&](int64_t left, int64_t right) {
    AddTo(stream, model.param_count(), param_grads_[right].data(), param_grads_[left].data());
  });
}

double StepRunner::ForwardBackward(const Batch& batch, const std::vector<TablePlan>& plans,
                                   int64_t step, bool training) {
  TERRACE_CHECK(batch.examples > 0 && batch.examples <= config_.train.batch);
  examples_ = batch.examples;
  const int64_t slices = shape_.Count(batch.examples);
  join_.Reset(slices);
  workers_.Run(slices, [&](int64_t slice, int worker) {
    RunSlice(batch, plans, step, training, slice, worker);
  });
  JoinSlices(slices, [&](int64_t left, int64_t right) { losses_[left] += losses_[right]; });
  return losses_[0];
}

void StepRunner::ListUpdates(const std::vector<TablePlan>& plans) {
  updates_.clear();
  for (size_t g = 0; g < plans.size(); ++g) {
    const Array<uint32_t>& offsets = plans[g].row_offsets;
    const auto rows = static_cast<int64_t>(plans[g].row_positions.size());
    for (int64_t begin = 0; begin < rows;) {
      const int64_t target = offsets[begin] + kTaskOccurrences;
      const auto stop =
          std::lower_bound(offsets.begin() + begin + 1, offsets.begin() + rows, target);
      const int64_t end = stop - offsets.begin();
      updates_.push_back({static_cast<int>(g), begin, end});
      begin = end;
    }
  }
  for (int64_t begin = 0; begin < state_.params.size(); begin += kTaskParams)
    updates_.push_back({-1, begin, std::min(begin + kTaskParams, state_.params.size())});
}

void StepRunner::UpdateTableRows(const TablePlan& plan, const UpdateTask& task, int64_t step,
                                 int worker) {
  MemoryTier& table = *state_.tables[task.table];
  const TableSchema& schema = table.schema();
  const Model& model = *state_.model;
  RowGradArgs sum;
  sum.dim = schema.layout.dim;
  sum.linear = schema.layout.linear;
  sum.slots = static_cast<int>(state_.mean_slots[task.table].size());
  sum.row_offsets = plan.row_offsets.data();
  sum.bags = plan.row_bags.data();
  sum.scales = plan.row_scales.empty() ? nullptr : plan.row_scales.data();
  sum.slice_examples = shape_.length;
  sum.pooled_grad =
      Matrix{input_grad_.data(), examples_, model.embedding_width(), model.embedding_width()}
          .Columns(state_.group_column[task.table], int64_t{sum.slots} * sum.dim);
  sum.linear_grad = sum.linear != 0 ? linear_grad_.data() : nullptr;
  sum.out = row_grads_[worker].data();
  sum.prefetch = RowsToUpdate(schema.layout, table.base(), plan.row_positions.data());
  RowUpdateArgs update;
  update.base = table.base();
  update.stride_bytes = schema.layout.stride;
  update.grads = sum.out;
  update.lr = schema.config.lr * config_.train.schedule.Factor(step);
  update.step = step;
  update.scratch = row_scratch_[worker].data();
  int64_t saturated = 0;
  for (int64_t begin = task.begin; begin < task.end; begin += kRowBlock) {
    sum.first = begin;
    sum.last = std::min(begin + kRowBlock, task.end);
    SumRowGradients(streams_[worker], sum);
    update.positions = plan.row_positions.data() + sum.first;
    update.rows = sum.last - sum.first;
    saturated += UpdateRows(streams_[worker], schema, update);
  }
  saturated_[static_cast<size_t>(worker)] += saturated;
}

double StepRunner::Train(const Batch& batch, const std::vector<TablePlan>& plans, int64_t step,
                         uint32_t tick) {
  RestartDue(plans, tick);
  const double loss = ForwardBackward(batch, plans, step, true);
  if (!std::isfinite(loss))
    throw Error(ErrorCode::kNumeric,
                fmt::format("the loss of batch {} is {}: training diverged. The model was not "
                            "updated with this batch. Lower optimizer.lr and the tables' lr, set "
                            "clip_norm, or scale the dense columns (log, standardise)",
                            step, loss));
  DenseUpdateArgs dense;
  dense.params = state_.params.data();
  dense.grads = param_grads_[0].data();
  dense.state = state_.dense_state.data();
  dense.size = state_.params.size();
  dense.lr = config_.optimizer.lr * config_.train.schedule.Factor(step);
  dense.step = step;
  if (config_.optimizer.clip_norm > 0) {
    const double norm = std::sqrt(SumOfSquares(streams_[0], dense.grads, dense.size));
    if (norm > config_.optimizer.clip_norm) dense.grad_factor = config_.optimizer.clip_norm / norm;
  }
  ListUpdates(plans);
  workers_.Run(static_cast<int64_t>(updates_.size()), [&](int64_t i, int worker) {
    const UpdateTask& task = updates_[i];
    if (task.table >= 0) {
      UpdateTableRows(plans[task.table], task, step, worker);
      CountUses(batch, plans[task.table], task, worker);
      return;
    }
    DenseUpdateArgs range = dense;
    range.begin = task.begin;
    range.end = task.end;
    UpdateDense(streams_[worker], config_.optimizer, range);
  });
  EndLives();
  return loss;
}

double StepRunner::Evaluate(const Batch& batch, std::vector<TablePlan>* plans, uint32_t tick) {
  HideDue(plans, tick);
  return ForwardBackward(batch, *plans, 0, false);
}

int64_t StepRunner::saturated() const {
  return std::accumulate(saturated_.begin(), saturated_.end(), int64_t{0});
}

int64_t StepRunner::scratch_bytes() const {
  int64_t floats = input_grad_.size() + linear_grad_.size() + probabilities_.size();
  for (const auto& b : param_grads_) floats += b.size();
  for (const auto& b : row_grads_) floats += b.size();
  for (const auto& b : row_scratch_) floats += b.size();
  for (const auto& b : logit_grads_) floats += b.size();
  int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  for (const auto& run : runs_) bytes += run->bytes();
  return bytes;
}

}  // namespace terrace
