#include "tier/disk_merger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/workers.h"

namespace terrace {
namespace {

constexpr int64_t kIndexBytes = 14;  // a key, at most, about
// Pages used over pages of live rows: merges begin, and are to be done before.
constexpr double kSpaceDue = 1.7, kSpaceLimit = 1.9;
constexpr int64_t kSlackPages = 4;  // a partition of few rows may be mostly garbage
constexpr int64_t kMaxLogs = 8;
constexpr int64_t kStepPages = 64;
constexpr int64_t kRetryRows = 1 << 20;

// Returns how many rows were left out because they are due.
template <typename Writer>
int64_t CopyRows(SortedRows* rows, bool tombstones, const RowTest& due, Writer* writer,
                 const ReadProgress& written) {
  int64_t left_out = 0;
  for (int64_t pages = 0; rows->Next();) {
    if (due && rows->row() != nullptr && due(rows->row())) {
      ++left_out;
      continue;
    }
    if (rows->row() != nullptr || tombstones) writer->Add(rows->mix(), rows->row());
    if (writer->pages() < pages + kStepPages) continue;
    pages = writer->pages();
    written(kStepPages);
  }
  return left_out;
}

}  // namespace

DiskMerger::DiskMerger(DiskContext* context,
                       const std::vector<std::unique_ptr<DiskPartition>>* partitions,
                       const DiskBudget& budget, const DiskOptions& options, Retire retire)
    : context_(*context),
      partitions_(*partitions),
      budget_(budget),
      background_(options.background),
      retire_(std::move(retire)),
      due_(options.due),
      forced_(partitions->size()) {
  {
    MutexLock lock(&mu_);
    AllowAll();
  }
  if (background_) thread_ = std::jthread([this] { Loop(); });
}

DiskMerger::~DiskMerger() { Stop(); }

void DiskMerger::Stop() {
  MutexLock lock(&mu_);
  stop_ = true;
  work_.NotifyAll();
  changed_.NotifyAll();
}

int64_t DiskMerger::IndexLimit() const {
  return budget_.IndexLimit(context_.fence_bytes, context_.filter_bytes,
                            context_.layout.partitions());
}

void DiskMerger::Advance(int64_t rows) {
  MutexLock lock(&mu_);
  rows_ += rows;
  if (background_) work_.NotifyOne();
}

bool DiskMerger::PickForIndex(const std::vector<PartitionStats>& all, Job* job) const {
  const int64_t index = context_.index_bytes, limit = IndexLimit();
  if (8 * index <= 7 * limit) return false;
  double best = 0;
  for (size_t p = 0; p < all.size(); ++p) {
    const double gain = static_cast<double>(all[p].log_keys) /
                        static_cast<double>(context_.layout.PagesFor(all[p].rows_max()) + 1);
    if (gain <= best) continue;
    best = gain;
    // Half of what is left, so that the next merge has room too.
    *job = {.partition = static_cast<int>(p),
            .paced_rows = (limit - index) / kIndexBytes / 2,
            .index_from = index,
            .index_to = limit};
  }
  return best > 0;
}

bool DiskMerger::PickForSpace(const std::vector<PartitionStats>& all, Job* job) const {
  const PageLayout& layout = context_.layout;
  int64_t used = 0, live = 0;  // pages
  for (const PartitionStats& s : all) {
    used += s.base_pages + s.log_pages;
    live += layout.PagesFor(s.rows_min()) + kSlackPages;
  }
  if (used <= static_cast<int64_t>(kSpaceDue * static_cast<double>(live))) return false;
  const int64_t limit = static_cast<int64_t>(kSpaceLimit * static_cast<double>(live));
  const int64_t paced_rows = (limit - used) * static_cast<int64_t>(layout.rows_per_page) / 2;
  double best = 0;
  for (size_t p = 0; p < all.size(); ++p) {
    const PartitionStats& s = all[p];
    const int64_t merged = layout.PagesFor(s.rows_min()), logs = layout.PagesFor(s.log_keys);
    const auto consider = [&](bool logs_alone, int64_t freed, int64_t written) {
      const double gain = static_cast<double>(freed) / static_cast<double>(written + 1);
      if (gain <= best) return;
      best = gain;
      *job = {.partition = static_cast<int>(p),
              .logs_alone = logs_alone,
              .paced_rows = paced_rows,
              .pages_from = used,
              // Many deletes at once can leave nothing below the limit: puts go on, slowly.
              .pages_to = std::max(limit, used + live / 32)};
    };
    consider(false, s.base_pages + s.log_pages - merged, merged);
    consider(true, s.log_pages - logs, logs);
  }
  return best > 0;
}

bool DiskMerger::PickJob(Job* job) {
  std::vector<PartitionStats> all;
  total_rows_ = 0;
  for (const auto& partition : partitions_) {
    all.push_back(partition->stats());
    total_rows_ += all.back().rows_max();
  }
  if (PickForIndex(all, job) || PickForSpace(all, job)) return true;
  for (size_t p = 0; p < all.size(); ++p) {
    const PartitionStats& s = all[p];
    if (s.log_keys == 0) forced_[p] = false;
    const bool many = s.logs > kMaxLogs || s.log_pages > LogPlace::kMaxNumber / 2;
    if (!forced_[p] && !many) continue;
    *job = {.partition = static_cast<int>(p),
            .logs_alone = !forced_[p] && 4 * s.log_keys < s.base_rows};
    return true;
  }
  return false;
}

void DiskMerger::Loop() {
  NameThisThread("disk-merge");
  for (;;) {
    {
      MutexLock lock(&mu_);
      Job job;
      while (!stop_ && (rows_ < retry_at_ || !PickJob(&job))) {
        changed_.NotifyAll();
        work_.Wait(&mu_);
      }
      if (stop_) return;
    }
    RunOne();
  }
}

bool DiskMerger::RunOne() {
  Job job;
  bool forced = false;
  {
    MutexLock lock(&mu_);
    while (running_) changed_.Wait(&mu_);
    if (stop_ || !PickJob(&job)) return false;
    running_ = true;
    // Who forces a merge from now on wants what is put from now on merged, too.
    if (!job.logs_alone) {
      forced = forced_[static_cast<size_t>(job.partition)];
      forced_[static_cast<size_t>(job.partition)] = false;
    }
    Allow(job, 0);
  }
  std::optional<ErrorCode> failure;
  std::string text;
  try {
    RunJob(job);
  } catch (const Stopped&) {
  } catch (const Error& e) {
    failure = e.code();
    text = e.what();
  } catch (const std::exception& e) {
    failure = ErrorCode::kInternal;
    text = e.what();
  }
  MutexLock lock(&mu_);
  running_ = false;
  AllowAll();
  failure_ = failure;
  failure_text_ = text;
  retry_at_ = failure ? rows_ + kRetryRows : 0;
  if (failure && forced) forced_[static_cast<size_t>(job.partition)] = true;
  changed_.NotifyAll();
  return true;
}

void DiskMerger::RunJob(const Job& job) {
  DiskPartition& partition = *partitions_[static_cast<size_t>(job.partition)];
  const DiskPartition::Frozen frozen = partition.Freeze();
  int64_t start_rows;
  {
    MutexLock lock(&mu_);
    start_rows = rows_;
  }
  const PageLayout& layout = context_.layout;
  const int64_t base_pages = job.logs_alone ? 0 : frozen.sources.base_pages();
  const int64_t total =
      2 * base_pages + frozen.sources.log_pages() + layout.PagesFor(frozen.keys);  // read, written
  Steps steps;
  int64_t done = 0;
  steps.read = [&](int64_t pages) {
    bytes_read_ += pages * static_cast<int64_t>(layout.page_bytes);
    Pace(job, start_rows, done += pages, total);
  };
  steps.written = [&](int64_t pages) { Pace(job, start_rows, done += pages, total); };
  if (job.logs_alone)
    RewriteLogs(partition, frozen, steps);
  else
    MergeIntoBase(partition, frozen, steps);
}

void DiskMerger::Allow(const Job& job, double progress) {
  const auto allowed = [&](int64_t from, int64_t to) {
    // A tenth at once, so that a merge that is in time holds up nobody.
    const double share = std::min(1.0, 0.1 + progress);
    if (from >= to) return to;  // logs that were written with more memory
    return from + static_cast<int64_t>(share * static_cast<double>(to - from));
  };
  if (job.index_to > 0) allowed_index_ = allowed(job.index_from, job.index_to);
  if (job.pages_to > 0) allowed_pages_ = allowed(job.pages_from, job.pages_to);
  changed_.NotifyAll();
}

void DiskMerger::AllowAll() {
  allowed_index_ = IndexLimit();
  allowed_pages_ = INT64_MAX;
}

void DiskMerger::Pace(const Job& job, int64_t start_rows, int64_t done, int64_t total) {
  MutexLock lock(&mu_);
  Allow(job, static_cast<double>(done) / static_cast<double>(std::max<int64_t>(total, 1)));
  for (;;) {
    if (stop_) throw Stopped();
    if (waiting_ > 0 || !background_) return;
    const double share = static_cast<double>(rows_ - start_rows + 1) /
                         static_cast<double>(std::max<int64_t>(job.paced_rows, 1));
    if (static_cast<double>(std::min(done, total)) <= share * static_cast<double>(total)) return;
    work_.Wait(&mu_);
  }
}

void DiskMerger::MergeIntoBase(DiskPartition& partition, const DiskPartition::Frozen& frozen,
                               const Steps& steps) {
  const int64_t base_rows = frozen.sources.base == nullptr ? 0 : frozen.sources.base->rows();
  int64_t store_rows;
  {
    MutexLock lock(&mu_);
    store_rows = total_rows_;
  }
  const uint64_t number = context_.next_file++;
  BaseWriter writer(context_.env, BasePath(context_.dir, number), context_.direct, context_.layout,
                    number, base_rows + frozen.keys,
                    budget_.FilterBits(store_rows, context_.absent_share()), budget_.io_bytes);
  SortedRows rows(frozen.sources, context_.layout, budget_.merge_bytes, steps.read,
                  budget_.io_bytes);
  const int64_t expired = CopyRows(&rows, false, due_ ? due_() : RowTest(), &writer, steps.written);
  std::shared_ptr<BaseFile> base = writer.Finish();
  if (base != nullptr) bytes_written_ += base->file_bytes();
  retire_(partition.InstallBase(frozen, std::move(base)));
  ++merges_;
  expired_ += expired;
}

void DiskMerger::RewriteLogs(DiskPartition& partition, const DiskPartition::Frozen& frozen,
                             const Steps& steps) {
  const uint64_t number = context_.next_file++;
  PageWriter writer(context_.env, LogPath(context_.dir, number), context_.direct, context_.layout,
                    number, frozen.keys, budget_.io_bytes);
  RowSources sources = frozen.sources;
  sources.base = nullptr;
  SortedRows rows(std::move(sources), context_.layout, budget_.merge_bytes, steps.read,
                  budget_.io_bytes);
  // None is left out: the base may hold an older value, which would be found then.
  CopyRows(&rows, true, {}, &writer, steps.written);
  writer.Flush();
  auto log = std::make_shared<LogFile>();
  log->number = number;
  log->pages = writer.pages();
  log->entries = writer.entries();
  log->file = writer.Keep();
  bytes_written_ += log->pages * static_cast<int64_t>(context_.layout.page_bytes);
  retire_(partition.InstallLog(frozen, std::move(log), writer.fences()));
  ++log_rewrites_;
}

void DiskMerger::WaitForRoomSlow() {
  MutexLock lock(&mu_);
  budget_.CheckRows(context_.dir, total_rows_, context_.fence_bytes, context_.filter_bytes,
                    context_.layout);
  ++waiting_;
  retry_at_ = 0;
  failure_.reset();
  const bool room = Drive([this] { return !HasRoom(); });
  --waiting_;
  if (!room && failure_) throw Error(*failure_, failure_text_);
  if (!room && !stop_) budget_.FailIndex(context_.dir, context_.index_bytes, IndexLimit());
}

bool DiskMerger::Drive(const std::function<bool()>& wanted) {
  Job job;
  while (wanted()) {
    if (failure_ || stop_) return false;
    // Others put and merge at the same time: what was wanted may have come in between.
    if (!running_ && !PickJob(&job)) return !wanted();
    if (background_) {
      work_.NotifyOne();
      changed_.Wait(&mu_);
    } else {
      mu_.Unlock();
      RunOne();
      mu_.Lock();
    }
  }
  return true;
}

void DiskMerger::Settle(bool everything) {
  MutexLock lock(&mu_);
  ++waiting_;
  retry_at_ = 0;
  failure_.reset();
  if (everything) std::fill(forced_.begin(), forced_.end(), true);
  Drive([] { return true; });
  --waiting_;
  if (failure_) throw Error(*failure_, failure_text_);
}

void DiskMerger::AddTo(DiskStats* stats) const {
  stats->merges = merges_;
  stats->log_rewrites = log_rewrites_;
  stats->merge_bytes_read = bytes_read_;
  stats->merge_bytes_written = bytes_written_;
  stats->expired = expired_;
  MutexLock lock(&mu_);
  stats->merge_failure = failure_text_;
}

}  // namespace terrace
