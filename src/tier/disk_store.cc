#include "tier/disk_store.h"

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "base/error.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/workers.h"
#include "tier/disk_budget.h"
#include "tier/disk_files.h"
#include "tier/disk_manifest.h"
#include "tier/disk_merger.h"
#include "tier/disk_partition.h"
#include "tier/disk_reader.h"

namespace terrace {
namespace {

constexpr int kDefaultPartitions = 64;
constexpr size_t kScanRows = 4096;
constexpr int kFilesPerPartition = 12;  // at most, about: a base, logs, and those of a merge

std::string ParentOf(const std::string& dir) {
  const size_t end = dir.find_last_not_of('/');
  const size_t slash = dir.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : dir.substr(0, slash);
}

class DiskStoreImpl : public DiskStore {
 public:
  DiskStoreImpl(const std::string& dir, const DiskOptions& options, const DiskManifest& manifest,
                std::unique_ptr<FileLock> lock, bool read_only);
  ~DiskStoreImpl() override;

  size_t row_bytes() const override { return context_.layout.row_bytes; }
  int partitions() const override { return context_.layout.partitions(); }
  int PartitionOf(uint64_t key) const override {
    return context_.layout.PartitionOf(MixOfKey(key));
  }

  size_t Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) override;
  void Put(std::span<const uint64_t> keys, const std::byte* rows) override;
  void Delete(std::span<const uint64_t> keys) override;
  void Commit() override EXCLUDES(commit_mu_);
  void Snapshot(const std::string& dir) override EXCLUDES(commit_mu_);
  void Scan(int first, int end, const ScanSink& sink) override;
  void Settle() override;
  void Merge() override;
  DiskStats stats() const override;

 private:
  void CheckWritable() const EXCLUDES(failure_mu_);
  void FailWrites(const std::string& why) EXCLUDES(failure_mu_);
  // Calls f(partition, items) for each partition's share of the keys.
  template <typename F>
  void Write(std::span<const uint64_t> keys, F f);
  DiskManifest FlushAndSync(bool seal) REQUIRES(commit_mu_);
  void CommitLocked(bool seal) REQUIRES(commit_mu_);
  DiskPartition& partition(int p) const { return *partitions_[static_cast<size_t>(p)]; }

  const DiskOptions options_;
  const bool read_only_;
  const std::unique_ptr<FileLock> lock_;
  const DiskBudget budget_;
  DiskContext context_;
  std::vector<std::unique_ptr<DiskPartition>> partitions_;
  DiskFiles files_;
  mutable DiskReaders readers_;

  Mutex commit_mu_;
  DiskManifest manifest_ GUARDED_BY(commit_mu_);  // of the last commit
  std::atomic<uint64_t> commits_;

  mutable Mutex failure_mu_;
  std::string failure_ GUARDED_BY(failure_mu_);  // why nothing can be written any more
  std::atomic<bool> failed_{false};              // failure_ is set

  std::atomic<int64_t> got_{0}, found_{0}, put_{0}, deleted_{0}, filtered_{0};
  std::optional<DiskMerger> merger_;  // absent in a read-only store; stops before all above
};

DiskStoreImpl::DiskStoreImpl(const std::string& dir, const DiskOptions& options,
                             const DiskManifest& manifest, std::unique_ptr<FileLock> lock,
                             bool read_only)
    : options_(options),
      read_only_(read_only),
      lock_(std::move(lock)),
      budget_(options, manifest.layout),
      context_{*options.env,
               dir,
               manifest.layout,
               options.direct && manifest.layout.page_bytes % kPageAlign == 0,
               budget_.FilterBits(manifest.rows()) > 0,
               budget_.buffer_rows},
      files_(*options.env),
      readers_(*options.env, budget_),
      manifest_(manifest),
      commits_(manifest.commit) {
  WantOpenFiles(int64_t{kFilesPerPartition} * partitions() + 256);
  context_.next_file = manifest.next_file;
  files_.SetCommitted(FilesOf(dir, manifest));
  for (int p = 0; p < context_.layout.partitions(); ++p)
    partitions_.push_back(std::make_unique<DiskPartition>(&context_, p));
  Workers workers("disk-open", std::min(AvailableCores(), 4));
  workers.Run(context_.layout.partitions(), [&](int64_t p, int) {
    partition(static_cast<int>(p)).Load(manifest.partitions[static_cast<size_t>(p)]);
  });
  const int64_t limit =
      budget_.IndexLimit(context_.fence_bytes, context_.filter_bytes, partitions());
  if (read_only && context_.index_bytes > limit)
    budget_.FailIndex(dir, context_.index_bytes, limit);
  if (read_only) return;
  merger_.emplace(&context_, &partitions_, budget_, options.background,
                  [this](const std::vector<std::string>& paths) { files_.Retire(paths); });
  merger_->WaitForRoom();
}

DiskStoreImpl::~DiskStoreImpl() {
  merger_.reset();
  if (read_only_ || options_.durability == Durability::kCommit) return;
  partitions_.clear();
  try {
    RemoveLeftovers(context_.env, context_.dir, {});
  } catch (const Error&) {  // the next one to open the directory does it
  }
}

void DiskStoreImpl::CheckWritable() const {
  if (read_only_)
    throw Error(ErrorCode::kUsage, context_.dir + ": the store is open for reading only");
  if (!failed_) return;
  MutexLock lock(&failure_mu_);
  throw Error(ErrorCode::kIo,
              fmt::format("{}: nothing can be written since a sync failed ({}): open the store "
                          "again, it is as the last commit left it",
                          context_.dir, failure_));
}

void DiskStoreImpl::FailWrites(const std::string& why) {
  merger_->Stop();
  MutexLock lock(&failure_mu_);
  if (failure_.empty()) failure_ = why;
  failed_ = true;
}

size_t DiskStoreImpl::Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) {
  DiskReaders::Lease batch(&readers_);
  size_t total = 0;
  for (size_t begin = 0; begin < keys.size(); begin += budget_.batch_keys) {
    const auto part = keys.subspan(begin, std::min(budget_.batch_keys, keys.size() - begin));
    std::byte* const part_rows = rows + begin * row_bytes();
    uint8_t* const part_found = found + begin;
    batch->requests.files.clear();
    batch->requests.requests.clear();
    batch->requests.filtered = 0;
    SortKeys(part, &batch->items, &batch->sorting);
    ForEachPartition(context_.layout, batch->items, [&](int p, std::span<const KeyItem> items) {
      partition(p).Lookup(items, part_rows, part_found, &batch->requests);
    });
    readers_.ReadRows(context_.layout, &*batch, part_rows, part_found);
    filtered_ += batch->requests.filtered;
    for (size_t i = 0; i < part.size(); ++i) total += part_found[i];
  }
  got_ += static_cast<int64_t>(keys.size());
  found_ += static_cast<int64_t>(total);
  return total;
}

template <typename F>
void DiskStoreImpl::Write(std::span<const uint64_t> keys, F f) {
  CheckWritable();
  Array<KeyItem> items, sorting;
  AlignedBuffer scratch;
  for (size_t begin = 0; begin < keys.size(); begin += budget_.batch_keys) {
    const auto part = keys.subspan(begin, std::min(budget_.batch_keys, keys.size() - begin));
    SortKeys(part, &items, &sorting);
    ForEachPartition(context_.layout, items, [&](int p, std::span<const KeyItem> share) {
      merger_->WaitForRoom();
      f(partition(p), share, begin, &scratch);
    });
    merger_->Advance(static_cast<int64_t>(part.size()));
  }
}

void DiskStoreImpl::Put(std::span<const uint64_t> keys, const std::byte* rows) {
  Write(keys,
        [&](DiskPartition& partition, std::span<const KeyItem> items, size_t begin,
            AlignedBuffer* scratch) { partition.Put(items, rows + begin * row_bytes(), scratch); });
  put_ += static_cast<int64_t>(keys.size());
}

void DiskStoreImpl::Delete(std::span<const uint64_t> keys) {
  Write(keys, [](DiskPartition& partition, std::span<const KeyItem> items, size_t,
                 AlignedBuffer* scratch) { partition.Delete(items, scratch); });
  deleted_ += static_cast<int64_t>(keys.size());
}

// What a failed write leaves is written again; what a failed sync leaves nobody knows.
DiskManifest DiskStoreImpl::FlushAndSync(bool seal) {
  std::vector<DiskPartition::Version> versions;
  for (const auto& partition : partitions_) versions.push_back(partition->Flush(seal));
  DiskManifest manifest;
  manifest.layout = context_.layout;
  try {
    for (size_t p = 0; p < versions.size(); ++p) {
      if (versions[p].base != nullptr) versions[p].base->Sync();
      for (const RowSources::Log& log : versions[p].unsynced) log.log->file->Sync();
      partitions_[p]->MarkSynced(versions[p]);
    }
    context_.env.SyncDirectory(context_.dir);
  } catch (const Error& e) {
    FailWrites(e.what());
    throw;
  }
  for (DiskPartition::Version& version : versions)
    manifest.partitions.push_back(std::move(version.manifest));
  manifest.commit = manifest_.commit + 1;
  manifest.next_file = context_.next_file;
  return manifest;
}

void DiskStoreImpl::CommitLocked(bool seal) {
  DiskManifest manifest = FlushAndSync(seal);
  bool renamed = false;
  try {
    WriteManifest(context_.env, context_.dir, manifest, &renamed);
  } catch (const Error& e) {
    if (renamed) FailWrites(e.what());
    throw;
  }
  files_.SetCommitted(FilesOf(context_.dir, manifest));
  manifest_ = std::move(manifest);
  commits_ = manifest_.commit;
}

// Merges may retire files between the flush and the manifest that names them: hold them.
class FileHold {
 public:
  explicit FileHold(DiskFiles* files) : files_(*files) { files_.Hold(); }
  ~FileHold() { files_.Release(); }
  FileHold(const FileHold&) = delete;
  FileHold& operator=(const FileHold&) = delete;

 private:
  DiskFiles& files_;
};

void DiskStoreImpl::Commit() {
  CheckWritable();
  if (options_.durability == Durability::kScratch)
    throw Error(ErrorCode::kUsage, context_.dir + ": a scratch store has no commits");
  MutexLock lock(&commit_mu_);
  FileHold hold(&files_);
  CommitLocked(false);
}

void DiskStoreImpl::Snapshot(const std::string& dir) {
  CheckWritable();
  Env& env = context_.env;
  MutexLock lock(&commit_mu_);
  FileHold hold(&files_);
  env.MakeDirectory(dir);
  env.SyncDirectory(ParentOf(dir));
  if (!env.List(dir).empty())
    throw Error(ErrorCode::kUsage, dir + ": is not empty; name a new directory for the snapshot");
  DiskManifest manifest;
  if (options_.durability == Durability::kScratch) {
    manifest = FlushAndSync(true);
  } else {
    CommitLocked(true);
    manifest = manifest_;
  }
  for (const ManifestPartition& partition : manifest.partitions) {
    if (partition.base.file != 0)
      env.Link(BasePath(context_.dir, partition.base.file), BasePath(dir, partition.base.file));
    for (const ManifestLog& log : partition.logs)
      env.Link(LogPath(context_.dir, log.file), LogPath(dir, log.file));
  }
  env.SyncDirectory(dir);
  bool renamed = false;
  WriteManifest(env, dir, manifest, &renamed);
}

void DiskStoreImpl::Scan(int first, int end, const ScanSink& sink) {
  TERRACE_CHECK(0 <= first && first <= end && end <= partitions());
  std::vector<uint64_t> keys;
  Array<std::byte> block(kScanRows * row_bytes());
  for (int p = first; p < end; ++p) {
    SortedRows rows(partition(p).Sources(), context_.layout, budget_.merge_bytes / 4, {});
    keys.clear();
    while (rows.Next()) {
      if (rows.row() == nullptr) continue;
      std::memcpy(&block[keys.size() * row_bytes()], rows.row(), row_bytes());
      keys.push_back(KeyOfMix(rows.mix()));
      if (keys.size() < kScanRows) continue;
      sink(keys, block.data());
      keys.clear();
    }
    if (!keys.empty()) sink(keys, block.data());
  }
}

void DiskStoreImpl::Settle() {
  CheckWritable();
  merger_->Settle(false);
}

void DiskStoreImpl::Merge() {
  CheckWritable();
  merger_->Settle(true);
}

DiskStats DiskStoreImpl::stats() const {
  DiskStats stats;
  stats.row_bytes = row_bytes();
  stats.page_bytes = context_.layout.page_bytes;
  stats.commits = commits_;
  PartitionStats& total = stats.total;
  for (const auto& partition : partitions_) {
    const PartitionStats& s = stats.partitions.emplace_back(partition->stats());
    total.base_rows += s.base_rows;
    total.base_pages += s.base_pages;
    total.log_rows += s.log_rows;
    total.log_pages += s.log_pages;
    total.logs += s.logs;
    total.log_keys += s.log_keys;
    total.tombstones += s.tombstones;
    total.new_keys += s.new_keys;
    total.file_bytes += s.file_bytes;
  }
  stats.pinned_bytes = files_.pinned_bytes();
  stats.fence_bytes = context_.fence_bytes;
  stats.filter_bytes = context_.filter_bytes;
  stats.index_bytes = context_.index_bytes;
  stats.buffer_bytes = static_cast<int64_t>(budget_.buffers);
  stats.index_limit = budget_.IndexLimit(stats.fence_bytes, stats.filter_bytes, partitions());
  const double base_rows = static_cast<double>(std::max<int64_t>(total.base_rows, 1));
  stats.log_share = static_cast<double>(total.log_keys) / base_rows;
  stats.filter_bits = 8 * static_cast<double>(stats.filter_bytes) / base_rows;
  stats.got = got_;
  stats.found = found_;
  stats.put = put_;
  stats.deleted = deleted_;
  stats.filtered = filtered_;
  stats.log_bytes_written = context_.log_bytes_written;
  stats.direct = context_.direct;
  readers_.AddTo(&stats);
  if (merger_) merger_->AddTo(&stats);
  return stats;
}

void CheckOptions(const std::string& dir, const DiskOptions& options, const PageLayout* stored) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, dir + ": " + what);
  };
  if (stored != nullptr) {
    if (options.row_bytes != 0 && options.row_bytes != stored->row_bytes)
      fail(
          fmt::format("the store has rows of {} bytes, {} were asked for: the model's rows have "
                      "changed, use another directory",
                      stored->row_bytes, options.row_bytes));
    if (options.partitions != 0 && options.partitions != stored->partitions())
      fail(
          fmt::format("the store has {} partitions, {} were asked for: the number is fixed when a "
                      "store is created",
                      stored->partitions(), options.partitions));
    return;
  }
  if (options.row_bytes < DiskOptions::kMinRowBytes ||
      options.row_bytes > DiskOptions::kMaxRowBytes)
    fail(fmt::format("rows of {} bytes; a disk tier takes {} to {}", options.row_bytes,
                     DiskOptions::kMinRowBytes, DiskOptions::kMaxRowBytes));
  const int partitions = options.partitions;
  if (partitions != 0 && (partitions < 0 || partitions > DiskOptions::kMaxPartitions ||
                          !std::has_single_bit(static_cast<unsigned>(partitions))))
    fail(fmt::format("{} partitions; a power of two up to {} is needed", partitions,
                     DiskOptions::kMaxPartitions));
  const size_t page = options.page_bytes;
  if (page != 0 && (page < 512 || page > (1 << 20) || !std::has_single_bit(page) ||
                    page < PageLayout::kHeaderBytes + 8 + options.row_bytes))
    fail(
        fmt::format("pages of {} bytes; a power of two from 512 to 1 MiB that holds a row of {} is "
                    "needed",
                    page, options.row_bytes));
}

}  // namespace

std::unique_ptr<DiskStore> DiskStore::Open(const std::string& dir, const DiskOptions& options) {
  Env& env = *options.env;
  if (!env.Exists(dir)) {
    env.MakeDirectory(dir);
    env.SyncDirectory(ParentOf(dir));
  }
  std::unique_ptr<FileLock> lock = env.Lock(dir + "/LOCK");
  const bool exists = env.Exists(ManifestPath(dir));
  if (exists && options.durability == Durability::kScratch)
    throw Error(ErrorCode::kUsage,
                dir +
                    ": holds a store with commits, which a scratch store would overwrite: use "
                    "another directory, or remove this one");
  DiskManifest manifest;
  if (exists) {
    manifest = ReadManifest(env, dir);
    CheckOptions(dir, options, &manifest.layout);
  } else {
    CheckOptions(dir, options, nullptr);
    const int partitions = options.partitions == 0 ? kDefaultPartitions : options.partitions;
    manifest.layout = PageLayout(options.row_bytes, options.page_bytes, partitions);
    manifest.partitions.resize(static_cast<size_t>(partitions));
    const DiskBudget budget(options, manifest.layout);  // too small: before anything is written
  }
  RemoveLeftovers(env, dir, FilesOf(dir, manifest));
  bool renamed = false;
  if (!exists && options.durability == Durability::kCommit)
    WriteManifest(env, dir, manifest, &renamed);
  return std::make_unique<DiskStoreImpl>(dir, options, manifest, std::move(lock), false);
}

std::unique_ptr<DiskStore> DiskStore::OpenReadOnly(const std::string& dir,
                                                   const DiskOptions& options) {
  if (!options.env->Exists(ManifestPath(dir)))
    throw Error(ErrorCode::kUsage, dir + ": holds no store (there is no MANIFEST)");
  const DiskManifest manifest = ReadManifest(*options.env, dir);
  CheckOptions(dir, options, &manifest.layout);
  return std::make_unique<DiskStoreImpl>(dir, options, manifest, nullptr, true);
}

}  // namespace terrace
