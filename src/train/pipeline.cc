#include "train/pipeline.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/workers.h"

namespace terrace {
namespace {

constexpr size_t kNoLimit = size_t{1} << 30;  // of a queue that other things bound
// Rows looked at in a batch to find those that are due, for each that it uses.
constexpr size_t kSweptPerRow = 2;

}  // namespace

MemoryNeeds MemoryNeeds::Of(const RunConfig& config, const ModelState& state,
                            const StepRunner& step, int64_t process_bytes) {
  MemoryNeeds needs;
  needs.fixed_bytes = process_bytes + step.scratch_bytes() + state.dense_bytes() +
                      (state.tiered.empty() ? 0 : DiskTierMemory(config.tiers));
  return needs;
}

Pipeline::Pipeline(const RunConfig& config, const FeatureSpec& spec, PipelineOptions options,
                   ModelState* state, const std::atomic<bool>& stop)
    : config_(config),
      spec_(spec),
      options_(std::move(options)),
      state_(*state),
      stop_(stop),
      has_test_(config.data.format == DataFormat::kSynthetic
                    ? config.data.synthetic.test_examples > 0
                    : !config.data.test.empty()),
      dedup_threads_(options_.dedup_threads),
      needs_(options_.needs),
      saver_(options_.saver),
      // In each of three queues, and one in each thread's hands, the caller's included.
      max_items_(3 * config.train.queue + dedup_threads_ + 3),
      read_queue_(config.train.queue),
      dedup_queue_(config.train.queue),
      plan_queue_(config.train.queue),
      free_items_(kNoLimit),
      verdicts_(1),
      part_queue_(kPartsAhead),
      pulled_queue_(kNoLimit),
      write_queue_(kNoLimit),
      free_writes_(kNoLimit),
      reader_(options_.start),
      last_saved_(reader_.steps),
      skipped_rows_(reader_.skipped_rows),
      sweepers_(state->tables.size()),
      dedup_running_(dedup_threads_) {
  const auto start = [this](const std::string& name, auto loop, auto at_end) {
    return std::jthread([this, name, loop, at_end] {
      NameThisThread(name);
      try {
        loop();
      } catch (...) {
        Fail();
      }
      at_end();
    });
  };
  read_thread_ = start(
      "read", [this] { ReadLoop(); }, [this] { read_queue_.Close(); });
  for (int t = 0; t < dedup_threads_; ++t) {
    dedup_workers_.push_back(std::make_unique<DedupWorker>());
    DedupWorker* const worker = dedup_workers_.back().get();
    worker->planners.resize(state_.tables.size());
    worker->rows.resize(state_.tables.size());
    worker->thread = start(
        fmt::format("dedup-{}", t), [this, worker] { DedupLoop(worker); },
        [this] {
          if (--dedup_running_ == 0) dedup_queue_.Close();
        });
  }
  if (state_.tiered.empty()) {
    plan_thread_ = start(
        "plan", [this] { PlanLoop(); }, [this] { plan_queue_.Close(); });
    return;
  }
  plan_thread_ = start(
      "plan", [this] { WindowLoop(); }, [this] { part_queue_.Close(); });
  pull_thread_ = start(
      "pull", [this] { PullLoop(); },
      [this] {
        pulled_queue_.Close();
        write_queue_.Close();
      });
  link_thread_ = start(
      "link", [this] { LinkLoop(); }, [this] { plan_queue_.Close(); });
  push_thread_ = start(
      "push", [this] { PushLoop(); }, [] {});
}

Pipeline::~Pipeline() {
  CancelAll();
  Join();
}

void Pipeline::CancelAll() {
  read_queue_.Cancel();
  dedup_queue_.Cancel();
  plan_queue_.Cancel();
  free_items_.Cancel();
  verdicts_.Cancel();
  part_queue_.Cancel();
  pulled_queue_.Cancel();
  write_queue_.Cancel();
  free_writes_.Cancel();
  if (saver_ != nullptr) saver_->Cancel();
  if (options_.cancelled != nullptr) *options_.cancelled = true;
  MutexLock lock(&progress_mu_);
  cancelled_ = true;
  progressed_.NotifyAll();
}

void Pipeline::Fail() {
  {
    MutexLock lock(&mu_);
    if (!error_) error_ = std::current_exception();
  }
  CancelAll();
}

void Pipeline::Join() {
  read_thread_ = {};  // joins
  for (const auto& worker : dedup_workers_) worker->thread = {};
  plan_thread_ = {};
  pull_thread_ = {};
  link_thread_ = {};
  push_thread_ = {};
}

std::unique_ptr<WorkItem> Pipeline::Next() {
  std::optional<std::unique_ptr<WorkItem>> item = plan_queue_.Pop();
  if (item) {
    next_at_ = NowSeconds();
    return std::move(*item);
  }
  Join();
  MutexLock lock(&mu_);
  if (error_) std::rethrow_exception(error_);
  return nullptr;
}

void Pipeline::Recycle(std::unique_ptr<WorkItem> item) {
  {
    MutexLock lock(&progress_mu_);
    done_ = WindowPlanner::StampOf(*item);
    if (item->has_batch()) {
      trained_seconds_ += NowSeconds() - next_at_;
      ++trained_;
    }
    progressed_.NotifyAll();
  }
  if (item->kind == WorkItem::Kind::kSnapshot) return;
  if (!state_.tiered.empty()) GiveLinks(item.get());
  if (items_made_ > max_items_) {
    --items_made_;
    return;
  }
  // Refused only when the run is ending.
  (void)free_items_.Push(std::move(item));
}

void Pipeline::Continue(bool go_on) { (void)verdicts_.Push(go_on); }

// --- dedup ---

void Pipeline::DedupLoop(DedupWorker* worker) {
  for (;;) {
    std::optional<std::unique_ptr<WorkItem>> item;
    {
      ScopedSeconds wait(&worker->time.wait_input);
      item = read_queue_.Pop();
    }
    if (!item) return;
    {
      ScopedSeconds busy(&worker->time.busy);
      DedupItem(worker, item->get());
    }
    ScopedSeconds wait(&worker->time.wait_output);
    const uint64_t number = (*item)->number;
    if (!dedup_queue_.Push(number, std::move(*item))) return;
  }
}

void Pipeline::DedupItem(DedupWorker* worker, WorkItem* item) {
  const bool tiered = !state_.tiered.empty();
  item->plans.resize(worker->planners.size());
  if (!item->has_batch()) {
    for (TablePlan& plan : item->plans) plan.row_keys.clear();
    if (item->kind == WorkItem::Kind::kEvalEnd) GiveKeys(&item->batch);
    return;
  }
  for (size_t g = 0; g < item->plans.size(); ++g) {
    const KeyGroup& group = item->batch.groups[g];
    PlanInput input;
    input.keys = group.keys;
    input.bag_offsets = group.offsets;
    input.values = group.values;
    input.slots = group.slots;
    input.mean_slots = state_.mean_slots[g];
    // With tiers many batches wait for their rows: what only training needs is made after that, and
    // rows are packed. What only training needs is made later where not all keys get rows, too.
    const bool training = item->kind == WorkItem::Kind::kTrain;
    const bool chooses = state_.admissions[g] != nullptr;
    TablePlan& plan = item->plans[g];
    if (tiered) TakeRowKeys(&plan);
    if (tiered && !chooses) plan.rows.swap(worker->rows[g]);
    if (training && !tiered && !chooses)
      worker->planners[g].PlanTrain(input, &plan);
    else
      worker->planners[g].PlanKeys(input, &plan);
    if (training && chooses) CountUses(input, item->batch.labels, &plan);
    if (tiered && !chooses) PackRows(&plan);
    if (plan.packed_bytes > 0) plan.rows.swap(worker->rows[g]);
  }
  GiveKeys(&item->batch);
  if (tiered) GiveOffsets(item);
}

StageTime Pipeline::dedup_time() const {
  StageTime mean;
  const auto threads = static_cast<double>(dedup_workers_.size());
  for (const auto& worker : dedup_workers_) {
    mean.busy += worker->time.busy / threads;
    mean.wait_input += worker->time.wait_input / threads;
    mean.wait_output += worker->time.wait_output / threads;
  }
  return mean;
}

int64_t Pipeline::scratch_bytes() const {
  int64_t bytes = AdmissionBytes();
  for (const Sweeper& sweeper : sweepers_)
    bytes += static_cast<int64_t>(sweeper.stamps.capacity() * sizeof(uint32_t));
  for (const auto& worker : dedup_workers_)
    for (const Planner& planner : worker->planners) bytes += planner.scratch_bytes();
  return bytes;
}

// --- plan ---

void Pipeline::PlanLoop() {
  for (;;) {
    std::optional<std::unique_ptr<WorkItem>> item;
    {
      ScopedSeconds wait(&plan_time_.wait_input);
      item = dedup_queue_.Pop();
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

void Pipeline::AdmitKeys(WorkItem* item) {
  if (item->kind != WorkItem::Kind::kTrain) return;
  for (size_t g = 0; g < item->plans.size(); ++g) {
    if (state_.admissions[g] == nullptr) continue;
    TablePlan& plan = item->plans[g];
    admitted_.resize(plan.row_keys.size());
    state_.admissions[g]->Step(plan.row_keys, plan.shows, plan.clicks, item->tick, admitted_);
    KeepRows(admitted_, &plan);
  }
}

// Keys without a row. A table of them that grows holds old and new for a moment.
int64_t Pipeline::AdmissionBytes() const {
  int64_t bytes = 0;
  for (const auto& admission : state_.admissions)
    if (admission != nullptr) bytes += admission->bytes() * 3 / 2;
  return bytes;
}

void Pipeline::SaveAdmissions(SnapshotPoint* point) const {
  for (const auto& admission : state_.admissions)
    point->admissions.push_back(admission == nullptr ? "" : admission->Save());
}

void Pipeline::PlanItem(WorkItem* item) {
  if (item->kind == WorkItem::Kind::kSnapshot) SaveAdmissions(item->snapshot.get());
  if (!item->has_batch()) return;
  AdmitKeys(item);
  for (size_t g = 0; g < item->plans.size(); ++g) {
    TablePlan& plan = item->plans[g];
    if (item->kind == WorkItem::Kind::kTrain) {
      if (state_.admissions[g] != nullptr)
        LinkRows(item->batch.groups[g].offsets, plan.row_keys.size(), &plan);
      PlaceRows(state_.tables[g].get(), &plan);
      lookups_ += static_cast<int64_t>(plan.row_keys.size());
    } else {
      FindRows(*state_.tables[g], &plan);
    }
    if (state_.lives[g] != nullptr && state_.lives[g]->expires()) Sweep(g, *item);
  }
  item_bytes_ = std::max(item_bytes_, item->bytes());
  if (config_.tiers.memory.budget > 0) CheckMemory();
}

void Pipeline::Sweep(size_t table, const WorkItem& item) {
  MemoryTier& memory = *state_.tables[table];
  const TablePlan& plan = item.plans[table];
  auto& [stamps, hand] = sweepers_[table];
  const auto positions = static_cast<size_t>(memory.last_position()) + 1;
  stamps.resize(positions);
  for (uint32_t position : plan.row_positions) stamps[position] = WindowPlanner::StampOf(item);
  uint32_t done;
  {
    MutexLock lock(&progress_mu_);
    done = done_;
  }
  const DueRule due = state_.lives[table]->Shared();
  const int64_t stats = memory.schema().layout.stats_offset();
  swept_.clear();
  for (size_t n = std::min(kSweptPerRow * plan.row_positions.size(), positions - 1); n > 0; --n) {
    hand = hand + 1 < positions ? hand + 1 : 1;
    // Nobody's, or held by a batch that is not trained yet.
    if (stamps[hand] == 0 || stamps[hand] > done) continue;
    const auto position = static_cast<uint32_t>(hand);
    if (!due.Due(memory.row(position) + stats)) continue;
    swept_.push_back(position);
    stamps[hand] = 0;
  }
  if (saver_ != nullptr) saver_->Remove(table, swept_);
  memory.Remove(swept_);
}

void Pipeline::CheckMemory() {
  int64_t rows = 0;
  for (const auto& table : state_.tables) rows += table->arena_bytes() + table->index_bytes();
  for (const Sweeper& sweeper : sweepers_)
    rows += static_cast<int64_t>(sweeper.stamps.capacity() * sizeof(uint32_t));
  rows += AdmissionBytes();
  const int64_t bytes = needs_.fixed_bytes + reader_bytes() + max_items_ * item_bytes_ + rows;
  if (bytes <= config_.tiers.memory.budget) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("the run needs {}, {} of it for rows; tiers.memory.budget is {}. Raise it, "
                  "or set tiers.disk.path to a directory on an SSD: rows that do not fit "
                  "in memory will live there",
                  ShortBytes(static_cast<double>(bytes)), ShortBytes(static_cast<double>(rows)),
                  ShortBytes(static_cast<double>(config_.tiers.memory.budget))));
}

}  // namespace terrace
