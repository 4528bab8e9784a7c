#include "train/pipeline.h"

#include "base/error.h"
#include "base/workers.h"

namespace terrace {

Pipeline::Pipeline(const RunConfig& config, const FeatureSpec& spec, Open open, ModelState* state,
                   const std::atomic<bool>& stop)
    : config_(config),
      spec_(spec),
      open_(std::move(open)),
      state_(*state),
      stop_(stop),
      has_test_(config.data.format == DataFormat::kSynthetic
                    ? config.data.synthetic.test_examples > 0
                    : !config.data.test.empty()),
      max_items_(2 * config.train.queue + 3),
      read_queue_(config.train.queue),
      plan_queue_(config.train.queue),
      free_items_(max_items_),
      verdicts_(1) {
  for (auto& table : state_.tables) planners_.emplace_back(table.get());
  const auto guard = [this](auto loop) {
    try {
      loop();
    } catch (...) {
      Fail();
    }
  };
  read_thread_ = std::jthread([this, guard] {
    NameThisThread("read");
    guard([this] { ReadLoop(); });
    read_queue_.Close();
  });
  plan_thread_ = std::jthread([this, guard] {
    NameThisThread("plan");
    guard([this] { PlanLoop(); });
    plan_queue_.Close();
  });
}

Pipeline::~Pipeline() { CancelAll(); }

void Pipeline::CancelAll() {
  read_queue_.Cancel();
  plan_queue_.Cancel();
  free_items_.Cancel();
  verdicts_.Cancel();
}

void Pipeline::Fail() {
  {
    MutexLock lock(&mu_);
    if (!error_) error_ = std::current_exception();
  }
  CancelAll();
}

std::unique_ptr<WorkItem> Pipeline::Next() {
  std::optional<std::unique_ptr<WorkItem>> item = plan_queue_.Pop();
  if (item) return std::move(*item);
  read_thread_ = {};  // joins
  plan_thread_ = {};
  MutexLock lock(&mu_);
  if (error_) std::rethrow_exception(error_);
  return nullptr;
}

void Pipeline::Recycle(std::unique_ptr<WorkItem> item) {
  // Refused only when the run is ending.
  (void)free_items_.Push(std::move(item));
}

void Pipeline::Continue(bool go_on) { (void)verdicts_.Push(go_on); }

// --- read ---

std::unique_ptr<WorkItem> Pipeline::NewItem() {
  if (spare_item_ != nullptr) return std::move(spare_item_);
  if (items_made_ < max_items_) {
    ++items_made_;
    auto item = std::make_unique<WorkItem>();
    item->batch = MakeBatch(spec_.shape);
    return item;
  }
  ScopedSeconds wait(&read_time_.wait_output);
  std::optional<std::unique_ptr<WorkItem>> item = free_items_.Pop();
  if (!item) return nullptr;
  ClearBatch(&(*item)->batch);
  return std::move(*item);
}

bool Pipeline::Emit(std::unique_ptr<WorkItem> item) {
  ScopedSeconds wait(&read_time_.wait_output);
  return read_queue_.Push(std::move(item));
}

void Pipeline::ReadLoop() {
  const double start = NowSeconds();
  for (int64_t epoch = 0; epoch < config_.train.epochs; ++epoch) {
    if (!ReadEpoch(epoch)) break;
  }
  read_time_.busy = NowSeconds() - start - read_time_.wait_input - read_time_.wait_output;
}

bool Pipeline::ReadEpoch(int64_t epoch) {
  OpenDataOptions options;
  options.seed = static_cast<uint64_t>(config_.seed);
  options.epoch = epoch;
  std::unique_ptr<DataStream> stream = open_(options);
  const auto epochs = static_cast<double>(config_.train.epochs);
  bool limit = false;
  while (!limit && !stop_.load(std::memory_order_relaxed)) {
    std::unique_ptr<WorkItem> item = NewItem();
    if (item == nullptr) return false;
    if (!stream->Next(config_.train.batch, &item->batch)) {
      ClearBatch(&item->batch);
      spare_item_ = std::move(item);
      break;
    }
    item->kind = WorkItem::Kind::kTrain;
    item->step = ++steps_read_;
    item->epoch = epoch;
    const double share = stream->progress();
    item->progress = share < 0 ? -1 : (static_cast<double>(epoch) + share) / epochs;
    if (config_.train.max_batches > 0) {
      limit = steps_read_ == config_.train.max_batches;
      const double of_limit =
          static_cast<double>(steps_read_) / static_cast<double>(config_.train.max_batches);
      item->progress = std::max(item->progress, of_limit);
    }
    if (!Emit(std::move(item))) return false;
    const bool due = config_.eval.every > 0 && steps_read_ % config_.eval.every == 0;
    if (due && has_test_ && !ReadEvaluation(epoch, false)) return false;
  }
  skipped_rows_ += stream->skipped_rows();
  if (steps_read_ == 0 && !stop_.load(std::memory_order_relaxed))
    throw Error(ErrorCode::kData, "the training data has no examples; check data.train");
  if (stop_.load(std::memory_order_relaxed)) return false;
  const bool last = limit || epoch + 1 == config_.train.epochs;
  if (has_test_ && (last || config_.eval.each_epoch) && !ReadEvaluation(epoch, last)) return false;
  return !limit;
}

bool Pipeline::ReadEvaluation(int64_t epoch, bool last) {
  OpenDataOptions options;
  options.part = DataPart::kTest;
  std::unique_ptr<DataStream> stream = open_(options);
  for (;;) {
    std::unique_ptr<WorkItem> item = NewItem();
    if (item == nullptr) return false;
    const bool more =
        !stop_.load(std::memory_order_relaxed) && stream->Next(config_.train.batch, &item->batch);
    item->kind = more ? WorkItem::Kind::kEval : WorkItem::Kind::kEvalEnd;
    item->step = steps_read_;
    item->epoch = epoch;
    item->last_eval = last;
    if (!Emit(std::move(item))) return false;
    if (!more) break;
  }
  if (stop_.load(std::memory_order_relaxed)) return false;
  if (config_.eval.early_stopping == 0) return true;
  ScopedSeconds wait(&read_time_.wait_output);
  return verdicts_.Pop().value_or(false);
}

// --- plan ---

void Pipeline::PlanLoop() {
  for (;;) {
    std::optional<std::unique_ptr<WorkItem>> item;
    {
      ScopedSeconds wait(&plan_time_.wait_input);
      item = read_queue_.Pop();
    }
    if (!item) return;
    {
      ScopedSeconds busy(&plan_time_.busy);
      PlanItem(item->get());
    }
    ScopedSeconds wait(&plan_time_.wait_output);
    if (!plan_queue_.Push(std::move(*item))) return;
  }
}

void Pipeline::PlanItem(WorkItem* item) {
  item->plans.resize(planners_.size());
  if (item->kind == WorkItem::Kind::kEvalEnd) return;
  int64_t bytes = BatchBytes(item->batch);
  for (size_t g = 0; g < planners_.size(); ++g) {
    const KeyGroup& group = item->batch.groups[g];
    PlanInput input;
    input.keys = group.keys;
    input.bag_offsets = group.offsets;
    input.values = group.values;
    input.slots = group.slots;
    input.mean_slots = state_.mean_slots[g];
    TablePlan& plan = item->plans[g];
    if (item->kind == WorkItem::Kind::kTrain) {
      planners_[g].PlanTrain(input, &plan);
      lookups_ += static_cast<int64_t>(plan.unique_positions.size());
    } else {
      planners_[g].PlanEval(input, &plan);
    }
    bytes +=
        static_cast<int64_t>(4 * (plan.positions.capacity() + plan.unique_positions.capacity() +
                                  plan.row_offsets.capacity() + plan.row_bags.capacity() +
                                  plan.scales.capacity() + plan.row_scales.capacity()));
  }
  item_bytes_ = std::max(item_bytes_, bytes);
}

}  // namespace terrace
