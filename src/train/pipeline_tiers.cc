// The pipeline's plan stage with a disk tier: windows, and what of the budget goes where.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "train/pipeline.h"

namespace terrace {
namespace {

constexpr int64_t kChunkShare = 512;      // of the budget
constexpr int64_t kOtherBytes = 6 << 20;  // stacks, the heap's own memory
constexpr int64_t kWindowsBetweenLooks = 8;
// While memory fills up windows are shorter than later, and there are slow moments.
constexpr int64_t kWindowsBetweenLimits = 64;
constexpr int64_t kSpareShare = 24;
constexpr int64_t kLeastSpareShare = 96;
constexpr int64_t kFirstWindow = 4;  // batches
constexpr int64_t kAdmissionShare = 12;

}  // namespace

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
    needs.item_bytes += 4 * needs.batch_rows.back();  // positions, still to come
    // Dedup's tables; keys of batches before it, and offsets.
    const size_t keys = first.plans[t].occurrences();
    const size_t bags =
        first.bag_keys[t] > 0 ? keys / static_cast<size_t>(first.bag_keys[t]) : size_t{0};
    const auto unpacked = static_cast<int64_t>(first.plans[t].packed_bytes > 0 ? 4 * keys : 0);
    needs.key_bytes += 8 * rows;
    needs.item_bytes -= static_cast<int64_t>(8 * first.plans[t].row_keys.capacity());
    needs.fixed_bytes +=
        dedup_threads_ *
            (KeyDedup::BytesFor(keys, first.plans[t].row_keys.size()) + unpacked + unpacked / 16) +
        KeyedItems() * static_cast<int64_t>(8 * std::bit_ceil(keys) + 4 * std::bit_ceil(bags));
    const size_t scales = first.plans[t].scales.size();
    const int64_t links = unpacked + static_cast<int64_t>(4 * (keys + scales + bags)) + 4 * rows;
    needs.fixed_bytes += LinkedItems() * (links + links / 16);
    needs.row_bytes.push_back(TieredTable::RowBytes(schema));
    disk_row = std::max(disk_row, static_cast<int64_t>(TieredTable::DiskRowBytes(schema)));
  }
  // Others are larger.
  needs.item_bytes += needs.item_bytes / 8;
  needs.key_bytes += needs.key_bytes / 8;
  chunk_rows_ = std::clamp<int64_t>(needs.budget / kChunkShare / disk_row, 256, kMostChunkRows);
  chunk_bytes_ = (kWriteBacks + kPullThreads) * chunk_rows_ * (disk_row + 16);
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
  window_ = sizes.window;
  limits.batches = config_.train.window > 0 ? sizes.window : std::min(window_, kFirstWindow);
  limits.moves = sizes.moves;
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

  queue_bytes_ = needs.QueueBytes(window_);
  max_items_ = needs.Items(limits.batches);
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
void Pipeline::KeepQueueBytes(const WorkItem& item) {
  int64_t key_bytes = 0;
  for (const TablePlan& plan : item.plans)
    key_bytes += static_cast<int64_t>(8 * plan.row_keys.capacity());
  const int64_t item_bytes = item.bytes() - key_bytes;
  if (item_bytes <= item_bytes_ && key_bytes <= key_bytes_) return;
  item_bytes_ = std::max(item_bytes, item_bytes_);
  key_bytes_ = std::max(key_bytes, key_bytes_);
  TierNeeds needs = tier_needs_;
  needs.item_bytes = item_bytes_;
  needs.key_bytes = key_bytes_;
  LimitWindow(needs.WindowIn(queue_bytes_));
}

int64_t Pipeline::queue_bytes() const {
  if (planner_ == nullptr) return max_items_ * item_bytes_;
  TierNeeds needs = tier_needs_;
  needs.item_bytes = item_bytes_;
  needs.key_bytes = key_bytes_;
  return needs.QueueBytes(planner_->batches());
}

void Pipeline::SetWindow(int64_t batches) {
  planner_->set_batches(batches);
  max_items_ = tier_needs_.Items(batches);
}

void Pipeline::LimitWindow(int64_t batches) {
  window_ = std::clamp<int64_t>(batches, 1, window_);
  if (planner_->batches() > window_) SetWindow(window_);
}

// Windows end where they have as many moves as they may: batches beyond that would only take memory
// from rows. So they grow from a few batches on, as long as that is not where they end. It lets
// training begin early, too.
void Pipeline::GrowWindow(int64_t batches) {
  largest_window_ = std::max(largest_window_, batches);
  if (batches == planner_->batches() && batches < window_)
    SetWindow(std::min(window_, batches + batches / 4 + 1));
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
  if (config_.train.window == 0 && planner_->stats().windows % kWindowsBetweenLimits == 0) {
    LimitWindow(largest_window_ + largest_window_ / 4 + 1);
    largest_window_ = 0;
  }
  const int64_t promised =
      std::max<int64_t>(0, DiskTierMemory(config_.tiers) - disk_bytes) +
      std::max<int64_t>(0, tier_needs_.Items(window_) - items_made_) * (item_bytes_ + key_bytes_) +
      std::max<int64_t>(0, admission_bytes_ - AdmissionBytes() * 2 / 3) +
      queue_bytes_ / kSpareShare;
  const int64_t spare =
      tier_needs_.budget - tier_needs_.budget / kSpareShare - RssBytes() - promised;
  if (spare > tier_needs_.budget / kLeastSpareShare) room_.bytes += spare / 2;
}

// Batches with keys: waiting for dedup, and in the hands of read and dedup.
int64_t Pipeline::KeyedItems() const { return config_.train.queue + dedup_threads_ + 1; }

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
  const auto busy = [&] {
    return NowSeconds() - start - plan_time_.wait_input - plan_time_.wait_output;
  };
  double planned = 0;  // seconds of work for the parts before
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
    WindowPart part;
    TakeMoves(&part.moves);
    if (!planner_->Next(&part)) return;
    for (size_t t = 0; t < state_.tiered.size(); ++t) state_.tiered[t]->Sort(&part.moves[t]);
    if (saver_ != nullptr) part.cuts = saver_->EndPart();
    for (const auto& item : part.items) {
      KeepQueueBytes(*item);
      GiveRowKeys(item.get(), tier_needs_.KeyedItems(planner_->batches()));
    }
    const bool last = part.part.last();
    if (last) GrowWindow(static_cast<int64_t>(part.items.size()));
    part.plan_seconds = busy() - planned;
    planned += part.plan_seconds;
    {
      ScopedSeconds wait(&plan_time_.wait_output);
      if (!part_queue_.Push(std::move(part))) return;
    }
    if (last) UseSpareMemory();
  }
  plan_time_.busy = busy();
}

}  // namespace terrace
