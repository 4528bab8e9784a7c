// The pipeline's stages that move rows between memory and disk: plan by windows, pull, push.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "base/workers.h"
#include "train/pipeline.h"

namespace terrace {
namespace {

constexpr int64_t kChunkShare = 256;  // of the budget
constexpr int kWriteBacks = 3;
constexpr int64_t kOtherBytes = 6 << 20;  // stacks, the heap's own memory
constexpr int64_t kWindowsBetweenLooks = 8;
// All batches of a window wait while its rows come: fewer rows where those take longer.
constexpr double kPullSeconds = 0.7;
constexpr int64_t kPacedMoves = 16 << 10;  // fewer say little about the pace
constexpr int64_t kSpareShare = 24;
constexpr int64_t kAdmissionShare = 12;
// A move is on the list of the window that is planned, of one that waits and of one that is pulled;
// that one is sorted, too.
constexpr int64_t kMoveBytes = 4 * sizeof(RowMove) + 2 * sizeof(KeyItem);

}  // namespace

// --- plan ---

// With the first batch its size is known, and so how the budget is best divided.
void Pipeline::StartTiers(const WorkItem& first) {
  TierNeeds& needs = tier_needs_;
  needs.budget = config_.tiers.memory.budget;
  needs.prefetch = config_.train.prefetch;
  needs.window = config_.train.window;
  needs.guests = has_test_;
  needs.look_ahead = config_.tiers.memory.policy == PolicyKind::kNextUse;
  needs.move_bytes = kMoveBytes;
  needs.item_bytes = first.bytes();
  // In the queues before plan, and in the hands of read, dedup, plan and train.
  needs.fixed_items = 2 * config_.train.queue + dedup_threads_ + 3;
  int64_t disk_row = 0;
  for (size_t t = 0; t < state_.tables.size(); ++t) {
    const TableSchema& schema = state_.tables[t]->schema();
    const auto rows = static_cast<int64_t>(first.plans[t].row_keys.size());
    needs.batch_rows.push_back(rows + rows / 8);      // others are larger
    needs.item_bytes += 8 * needs.batch_rows.back();  // positions and missing rows, still to come
    // Dedup's tables, and the keys of batches before it.
    const size_t keys = first.plans[t].rows.size();
    needs.fixed_bytes +=
        dedup_threads_ * KeyDedup::BytesFor(keys, first.plans[t].row_keys.size()) +
        (config_.train.queue + dedup_threads_ + 1) * static_cast<int64_t>(8 * std::bit_ceil(keys));
    const size_t scales = first.plans[t].scales.size();
    const auto links =
        static_cast<int64_t>(4 * (keys + scales) + 4 * first.plans[t].row_keys.size());
    needs.fixed_bytes += LinkedItems() * (links + links / 16);
    needs.row_bytes.push_back(TieredTable::RowBytes(schema));
    disk_row = std::max(disk_row, static_cast<int64_t>(TieredTable::DiskRowBytes(schema)));
  }
  needs.item_bytes += needs.item_bytes / 8;  // others are larger
  chunk_rows_ = std::clamp<int64_t>(needs.budget / kChunkShare / disk_row, 256, kMostChunkRows);
  chunk_bytes_ = (kWriteBacks + 1) * chunk_rows_ * (disk_row + 16);
  needs.fixed_bytes += needs_.fixed_bytes + 2 * train_reader_bytes_ + chunk_bytes_ + kOtherBytes;
  for (const auto& admission : state_.admissions)
    if (admission != nullptr) admission_bytes_ += admission->settled_bytes() * 3 / 2;
  if (admission_bytes_ > 0) {
    admission_bytes_ = std::max(admission_bytes_, needs.budget / kAdmissionShare);
    needs.fixed_bytes += admission_bytes_;
  }
  needs.growing_bytes = chunk_bytes_;
  if (config_.tiers.disk.memory == 0) needs.growing_bytes += DiskTierMemory(config_.tiers);

  TierSizes sizes;
  if (needs_.rows > 0) {
    sizes.window = std::max<int64_t>(config_.train.window, 1);
    sizes.moves = needs_.rows;
    sizes.items = needs.fixed_items + needs.windows() * sizes.window;
    for (size_t t = 0; t < state_.tables.size(); ++t) {
      sizes.guests.push_back(needs_.rows / 4);
      sizes.own_rows.push_back(needs_.rows + needs_.rows / 4);
    }
  } else {
    sizes = DivideBudget(needs);
  }
  room_.bytes = sizes.shared_bytes;
  std::vector<TieredTable*> tables;
  for (size_t t = 0; t < state_.tiered.size(); ++t) {
    tables.push_back(state_.tiered[t].get());
    tables[t]->Start(sizes.own_rows[t], sizes.guests[t], &room_);
  }
  WindowLimits limits;
  limits.batches = window_ = sizes.window;
  limits.moves = window_moves_ = sizes.moves;
  limits.prefetch = needs.prefetch;
  limits.look_ahead = needs.look_ahead;
  limits.budget = needs.budget;
  WindowPlanner::Progress progress;
  progress.done = [this] {
    MutexLock lock(&progress_mu_);
    return done_;
  };
  progress.wait = [this](uint32_t stamp) { return WaitForDone(stamp); };
  planner_ = std::make_unique<WindowPlanner>(tables, limits, progress);

  queue_bytes_ = sizes.items * needs.item_bytes;
  max_items_ = sizes.items;
  // The read thread may wait for an item; from this one on it knows that there are more.
  auto item = std::make_unique<WorkItem>();
  item->batch = MakeBatch(spec_.shape);
  ++items_made_;
  (void)free_items_.Push(std::move(item));
}

void Pipeline::CheckAdmission() const {
  if (AdmissionBytes() <= admission_bytes_) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("keys that have no row yet take {}, of tiers.memory.budget {} was set aside for "
                  "them: set admission.forget (and life.unseen) so that old ones go, tell "
                  "admission.keys how many there are, or raise the budget to {}",
                  ShortBytes(static_cast<double>(AdmissionBytes())),
                  ShortBytes(static_cast<double>(admission_bytes_)),
                  ShortBytes(static_cast<double>(2 * tier_needs_.budget))));
}

// Batches may grow: then there are fewer of them.
void Pipeline::KeepQueueBytes(int64_t item_bytes) {
  if (item_bytes <= item_bytes_) return;
  item_bytes_ = item_bytes;
  const int64_t items = queue_bytes_ / item_bytes_;
  LimitWindow((items - tier_needs_.fixed_items) / tier_needs_.windows());
}

void Pipeline::LimitWindow(int64_t batches) {
  const int64_t window = std::clamp<int64_t>(batches, 1, planner_->batches());
  if (window == planner_->batches()) return;
  planner_->set_batches(window);
  max_items_ = tier_needs_.fixed_items + tier_needs_.windows() * window;
}

// What was set aside and turned out not to be needed goes to rows, half of it at a time: what the
// process really uses decides.
void Pipeline::UseSpareMemory() {
  if (needs_.rows > 0 || planner_->stats().windows % kWindowsBetweenLooks != 0) return;
  int64_t disk_bytes = 0;
  for (const auto& table : state_.tiered) {
    if (table->grows()) return;  // nothing is spare yet
    disk_bytes += table->disk().stats().memory_bytes();
  }
  const int64_t promised = std::max<int64_t>(0, DiskTierMemory(config_.tiers) - disk_bytes) +
                           std::max<int64_t>(0, max_items_ - items_made_) * item_bytes_ +
                           std::max<int64_t>(0, admission_bytes_ - AdmissionBytes() * 2 / 3) +
                           queue_bytes_ / kSpareShare;
  // Windows that are always cut for their moves never need all the batches they may have.
  const int64_t most_made = items_made_ + items_made_ / 16;
  if (planner_->stats().cut == planner_->stats().windows && most_made < max_items_)
    LimitWindow((most_made - tier_needs_.fixed_items) / tier_needs_.windows());
  const int64_t spare =
      tier_needs_.budget - tier_needs_.budget / kSpareShare - RssBytes() - promised;
  if (spare > tier_needs_.budget / kSpareShare) room_.bytes += spare / 2;
}

// Batches with an inverse index: waiting for train, and in the hands of link and train.
int64_t Pipeline::LinkedItems() const { return config_.train.queue + 2; }

int64_t Pipeline::tier_bytes() const {
  if (!planner_) return 0;
  return chunk_bytes_ + planner_->most_moves() * kMoveBytes + LinkedItems() * link_bytes_;
}

bool Pipeline::WaitForDone(uint32_t stamp) {
  ScopedSeconds wait(&plan_time_.wait_output);
  MutexLock lock(&progress_mu_);
  while (done_ < stamp && !cancelled_) progressed_.Wait(&progress_mu_);
  return !cancelled_;
}

void Pipeline::WindowLoop() {
  const double start = NowSeconds();
  for (bool more = true; more || !planner_->empty();) {
    while (more && (planner_ == nullptr || planner_->WantsMore())) {
      std::optional<std::unique_ptr<WorkItem>> item;
      {
        ScopedSeconds wait(&plan_time_.wait_input);
        item = dedup_queue_.Pop();
      }
      more = item.has_value();
      if (!more) break;
      if ((*item)->kind == WorkItem::Kind::kSnapshot) SaveAdmissions((*item)->snapshot.get());
      if (planner_ == nullptr && !(*item)->has_batch()) {
        // Nothing is known of the batches' size yet, nor needed.
        if (!plan_queue_.Push(std::move(*item))) return;
        continue;
      }
      if (planner_ == nullptr) StartTiers(**item);
      AdmitKeys(item->get());
      if (admission_bytes_ > 0 && needs_.rows == 0) CheckAdmission();
      planner_->Add(std::move(*item));
    }
    if (planner_ == nullptr || planner_->empty()) break;
    Window window;
    if (pull_moves_ > 0) planner_->set_moves(std::min<int64_t>(window_moves_, pull_moves_));
    if (!planner_->Next(&window)) return;
    if (saver_ != nullptr) window.cuts = saver_->EndWindow();
    for (const auto& item : window.items) KeepQueueBytes(item->bytes());
    if (!window_queue_.Push(std::move(window))) return;
    UseSpareMemory();
  }
  plan_time_.busy = NowSeconds() - start - plan_time_.wait_input - plan_time_.wait_output;
}

// --- pull ---

bool Pipeline::WaitForWrites() {
  ScopedSeconds wait(&pull_time_.wait_output);
  MutexLock lock(&progress_mu_);
  while (writes_ended_ < writes_started_ && !cancelled_) progressed_.Wait(&progress_mu_);
  return !cancelled_;
}

void Pipeline::PullLoop() {
  TakeShortTurns();
  for (int i = 0; i < kWriteBacks; ++i) (void)free_writes_.Push(std::make_unique<WriteBack>());
  const double start = NowSeconds();
  for (;;) {
    std::optional<Window> window;
    {
      ScopedSeconds wait(&pull_time_.wait_input);
      window = window_queue_.Pop();
    }
    if (!window) break;
    const double begin = NowSeconds();
    size_t moves = 0;
    for (const RowMoves& of_table : window->moves) moves += of_table.size();
    if (!PullWindow(&*window)) return;
    if (saver_ != nullptr) saver_->WindowPulled();
    if (const double seconds = NowSeconds() - begin; moves >= kPacedMoves && seconds > 0)
      pull_moves_ = std::max(
          kPacedMoves, static_cast<int64_t>(static_cast<double>(moves) * kPullSeconds / seconds));
    for (auto& item : window->items)
      if (!pulled_queue_.Push(std::move(item))) return;
  }
  pull_time_.busy = NowSeconds() - start - pull_time_.wait_input - pull_time_.wait_output;
}

bool Pipeline::PullWindow(Window* window) {
  // A row that left earlier is on disk before it is asked for again.
  if (!WaitForWrites()) return false;
  for (size_t t = 0; t < state_.tiered.size(); ++t) {
    TieredTable& table = *state_.tiered[t];
    table.Sort(&window->moves[t]);
    const std::span<const RowMove> moves = window->moves[t];
    for (size_t begin = 0; begin < moves.size(); begin += static_cast<size_t>(chunk_rows_)) {
      const auto chunk =
          moves.subspan(begin, std::min(static_cast<size_t>(chunk_rows_), moves.size() - begin));
      std::optional<std::unique_ptr<WriteBack>> rows;
      {
        ScopedSeconds wait(&pull_time_.wait_output);
        rows = free_writes_.Pop();
      }
      if (!rows) return false;
      table.CopyVictims(chunk, rows->get());
      (*rows)->table = static_cast<int>(t);
      (*rows)->cuts = window->cuts;
      if (!(*rows)->keys.empty()) {
        ++writes_started_;
        if (saver_ != nullptr) saver_->WriteStarted(window->cuts);
        if (!write_queue_.Push(std::move(*rows))) return false;
      } else if (!free_writes_.Push(std::move(*rows))) {
        return false;
      }
      table.Fetch(chunk);
    }
  }
  return true;
}

// --- link ---

void Pipeline::GiveLinks(WorkItem* item) {
  MutexLock lock(&mu_);
  for (TablePlan& plan : item->plans) {
    if (plan.row_bags.capacity() == 0) continue;
    TablePlan& spare = spare_links_.emplace_back();
    spare.row_offsets.swap(plan.row_offsets);
    spare.row_bags.swap(plan.row_bags);
    spare.row_scales.swap(plan.row_scales);
  }
}

void Pipeline::TakeLinks(WorkItem* item) {
  MutexLock lock(&mu_);
  for (TablePlan& plan : item->plans) {
    if (spare_links_.empty()) return;
    TablePlan& spare = spare_links_.back();
    plan.row_offsets.swap(spare.row_offsets);
    plan.row_bags.swap(spare.row_bags);
    plan.row_scales.swap(spare.row_scales);
    spare_links_.pop_back();
  }
}

void Pipeline::LinkLoop() {
  for (;;) {
    std::optional<std::unique_ptr<WorkItem>> item;
    {
      ScopedSeconds wait(&link_time_.wait_input);
      item = pulled_queue_.Pop();
    }
    if (!item) return;
    if ((*item)->has_batch()) {
      ScopedSeconds busy(&link_time_.busy);
      const bool training = (*item)->kind == WorkItem::Kind::kTrain;
      if (training) TakeLinks(item->get());
      int64_t bytes = -(*item)->bytes();
      for (size_t t = 0; t < (*item)->plans.size(); ++t) {
        if (training) LinkRows((*item)->batch.groups[t].offsets, &(*item)->plans[t]);
        FillPositions(&(*item)->plans[t]);
      }
      bytes += (*item)->bytes();
      link_bytes_ = std::max(link_bytes_, bytes);
    }
    ScopedSeconds wait(&link_time_.wait_output);
    if (!plan_queue_.Push(std::move(*item))) return;
  }
}

// --- push ---

void Pipeline::PushLoop() {
  for (;;) {
    std::optional<std::unique_ptr<WriteBack>> rows;
    {
      ScopedSeconds wait(&push_time_.wait_input);
      rows = write_queue_.Pop();
    }
    if (!rows) return;
    const auto table = static_cast<size_t>((*rows)->table);
    if (saver_ != nullptr) {
      ScopedSeconds wait(&push_time_.wait_output);
      if (!saver_->WaitForWrite((*rows)->cuts)) return;
    }
    {
      ScopedSeconds busy(&push_time_.busy);
      if (saver_ != nullptr) {
        MutexLock lock(saver_->order(table));
        state_.tiered[table]->Write(**rows);
      } else {
        state_.tiered[table]->Write(**rows);
      }
      push_bytes_ += static_cast<int64_t>((*rows)->rows.size() + 8 * (*rows)->keys.size());
      if (config_.tiers.disk.budget > 0) CheckDisk();
    }
    if (saver_ != nullptr) saver_->WriteEnded((*rows)->cuts);
    {
      MutexLock lock(&progress_mu_);
      ++writes_ended_;
      progressed_.NotifyAll();
    }
    if (!free_writes_.Push(std::move(*rows))) return;
  }
}

void Pipeline::CheckDisk() {
  int64_t bytes = 0;
  for (const auto& table : state_.tiered) bytes += table->disk().stats().total.file_bytes;
  if (bytes <= config_.tiers.disk.budget) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("the disk tier takes {}, tiers.disk.budget is {}: raise it to twice the "
                          "bytes of the model's rows, or train with fewer keys",
                          ShortBytes(static_cast<double>(bytes)),
                          ShortBytes(static_cast<double>(config_.tiers.disk.budget))));
}

}  // namespace terrace
