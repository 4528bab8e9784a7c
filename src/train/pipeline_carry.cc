// The pipeline's stages that carry rows between memory and disk: pull, link and push.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/workers.h"
#include "train/pipeline.h"

namespace terrace {
namespace {

// Where training computes for more than this share of the time, CPU time is scarce: pull stays on
// the CPU where reads cost least of it. Elsewhere that CPU would be the bottleneck.
constexpr double kBusyShare = 0.5;

}  // namespace

// --- pull ---

bool Pipeline::WaitForWrites() {
  ScopedSeconds wait(&pull_time_.wait_output);
  MutexLock lock(&progress_mu_);
  while (writes_ended_ < writes_started_ && !cancelled_) progressed_.Wait(&progress_mu_);
  return !cancelled_;
}

void Pipeline::PullLoop() {
  TakeShortTurns();
  Workers team("pull", kPullThreads, TakeShortTurns);
  const CpuStay cpu(InterruptCpu(config_.tiers.disk.path));
  pullers_.assign(kPullThreads, Puller{.cpu = cpu});
  for (int i = 0; i < kWriteBacks; ++i) (void)free_writes_.Push(std::make_unique<WriteBack>());
  const double start = NowSeconds();
  for (;;) {
    std::optional<WindowPart> part;
    {
      ScopedSeconds wait(&pull_time_.wait_input);
      part = part_queue_.Pop();
    }
    if (!part) {
      MutexLock lock(&progress_mu_);
      release_pace_.Finish();
      progressed_.NotifyAll();
      break;
    }
    const double begin = NowSeconds();
    BeginPull(*part);
    if (!PullPart(&*part, &team)) return;
    if (saver_ != nullptr) saver_->PartPulled();
    EndPull(*part, NowSeconds() - begin);
    GiveMoves(&part->moves);
    for (auto& item : part->items)
      if (!pulled_queue_.Push(std::move(item))) return;
  }
  for (const Puller& puller : pullers_) pull_time_.wait_output += puller.wait_output / kPullThreads;
  pull_time_.busy = NowSeconds() - start - pull_time_.wait_input - pull_time_.wait_output;
}

void Pipeline::BeginPull(const WindowPart& part) {
  MutexLock lock(&progress_mu_);
  if (part.part.first())
    release_pace_.BeginPull(part.move_count() * part.part.parts, part.plan_seconds, NowSeconds());
  else
    release_pace_.GoOn(NowSeconds());
}

void Pipeline::EndPull(const WindowPart& part, double seconds) {
  pull_seconds_ += seconds;
  MutexLock lock(&progress_mu_);
  if (!part.part.last()) {
    release_pace_.Pause(NowSeconds());
    return;
  }
  double train_seconds = 0;  // a batch
  if (trained_ > paced_batches_)
    train_seconds =
        (trained_seconds_ - paced_seconds_) / static_cast<double>(trained_ - paced_batches_);
  paced_seconds_ = trained_seconds_;
  paced_batches_ = trained_;
  pull_stays_ = train_seconds * static_cast<double>(part.items.size()) > kBusyShare * pull_seconds_;
  pull_seconds_ = 0;
  release_pace_.EndPull(std::ssize(part.items), NowSeconds());
  progressed_.NotifyAll();
}

bool Pipeline::WaitForRelease() {
  MutexLock lock(&progress_mu_);
  while (!cancelled_ && !release_pace_.Release(NowSeconds()))
    progressed_.WaitFor(&progress_mu_, ReleasePace::kLook);
  return !cancelled_;
}

bool Pipeline::PullPart(WindowPart* part, Workers* team) {
  // A row that left for an earlier window is on disk before it is asked for again.
  if (part->part.first() && !WaitForWrites()) return false;
  for (size_t t = 0; t < state_.tiered.size(); ++t) {
    const std::span<const RowMove> moves = part->moves[t];
    const auto size = static_cast<size_t>(chunk_rows_);
    std::atomic<bool> cancelled{false};
    team->Run(static_cast<int64_t>((moves.size() + size - 1) / size), [&](int64_t c, int worker) {
      const size_t begin = static_cast<size_t>(c) * size;
      const auto chunk = moves.subspan(begin, std::min(size, moves.size() - begin));
      if (!PullChunk(t, part->cuts, chunk, worker)) cancelled = true;
    });
    if (cancelled) return false;
  }
  return true;
}

bool Pipeline::PullChunk(size_t table, uint32_t cuts, std::span<const RowMove> moves, int worker) {
  Puller& puller = pullers_[static_cast<size_t>(worker)];
  puller.cpu.Set(pull_stays_);
  std::optional<std::unique_ptr<WriteBack>> rows;
  {
    ScopedSeconds wait(&puller.wait_output);
    rows = free_writes_.Pop();
  }
  if (!rows) return false;
  state_.tiered[table]->CopyVictims(moves, rows->get());
  (*rows)->table = static_cast<int>(table);
  (*rows)->cuts = cuts;
  if (!(*rows)->keys.empty()) {
    ++writes_started_;
    if (saver_ != nullptr) saver_->WriteStarted(cuts);
    if (!write_queue_.Push(std::move(*rows))) return false;
  } else if (!free_writes_.Push(std::move(*rows))) {
    return false;
  }
  state_.tiered[table]->Fetch(moves, &puller.buffers);
  MutexLock lock(&progress_mu_);
  release_pace_.Pulled(std::ssize(moves));
  progressed_.NotifyAll();
  return true;
}

void Pipeline::GiveMoves(std::vector<RowMoves>* moves) {
  MutexLock lock(&mu_);
  spare_moves_.push_back(std::move(*moves));
}

void Pipeline::TakeMoves(std::vector<RowMoves>* moves) {
  MutexLock lock(&mu_);
  if (spare_moves_.empty()) return;
  moves->swap(spare_moves_.back());
  spare_moves_.pop_back();
}

// --- link ---

// A batch whose rows have places does not need their keys any more.
void Pipeline::GiveRowKeys(WorkItem* item, int64_t most) {
  MutexLock lock(&mu_);
  for (TablePlan& plan : item->plans) {
    if (std::ssize(spare_row_keys_) < most * std::ssize(item->plans))
      spare_row_keys_.push_back(std::move(plan.row_keys));
    Array<uint64_t>().swap(plan.row_keys);
  }
}

void Pipeline::TakeRowKeys(TablePlan* plan) {
  MutexLock lock(&mu_);
  if (spare_row_keys_.empty() || plan->row_keys.capacity() > 0) return;
  plan->row_keys.swap(spare_row_keys_.back());
  spare_row_keys_.pop_back();
}

void Pipeline::GiveLinks(WorkItem* item) {
  MutexLock lock(&mu_);
  for (TablePlan& plan : item->plans) {
    const bool packed = !plan.packed_rows.empty() && plan.positions.capacity() > 0;
    if (!packed && plan.row_bags.capacity() == 0) continue;
    TablePlan& spare = spare_links_.emplace_back();
    if (packed) spare.rows.swap(plan.positions);
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
    if (plan.packed_bytes > 0) plan.rows.swap(spare.rows);
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
      TakeLinks(item->get());
      int64_t bytes = -(*item)->bytes();
      TakeOffsets(item->get());
      for (size_t t = 0; t < (*item)->plans.size(); ++t) {
        TablePlan& plan = (*item)->plans[t];
        UnpackRows(&plan);
        if (training) LinkRows((*item)->batch.groups[t].offsets, plan.row_positions.size(), &plan);
        FillPositions(&plan);
      }
      bytes += (*item)->bytes();
      link_bytes_ = std::max(link_bytes_, bytes);
    }
    ScopedSeconds wait(&link_time_.wait_output);
    if (!WaitForRelease() || !plan_queue_.Push(std::move(*item))) return;
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
