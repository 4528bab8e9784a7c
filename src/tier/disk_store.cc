#include "tier/disk_store.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/workers.h"
#include "tier/disk_store_impl.h"

namespace terrace {
namespace {

constexpr size_t kScanRows = 4096;

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

}  // namespace

void PartitionStats::Add(const PartitionStats& other) {
  base_rows += other.base_rows;
  base_pages += other.base_pages;
  log_rows += other.log_rows;
  log_pages += other.log_pages;
  file_bytes += other.file_bytes;
  logs += other.logs;
  log_keys += other.log_keys;
  tombstones += other.tombstones;
  new_keys += other.new_keys;
}

void DiskStats::Add(const DiskStats& other) {
  total.Add(other.total);
  pinned_bytes += other.pinned_bytes;
  fence_bytes += other.fence_bytes;
  filter_bytes += other.filter_bytes;
  index_bytes += other.index_bytes;
  buffer_bytes += other.buffer_bytes;
  index_limit += other.index_limit;
  got += other.got;
  found += other.found;
  put += other.put;
  deleted += other.deleted;
  page_reads += other.page_reads;
  pages_read += other.pages_read;
  filtered += other.filtered;
  log_bytes_written += other.log_bytes_written;
  merge_bytes_read += other.merge_bytes_read;
  merge_bytes_written += other.merge_bytes_written;
  merges += other.merges;
  log_rewrites += other.log_rewrites;
  expired += other.expired;
  engine = other.engine;
  direct = other.direct;
  page_bytes = std::max(page_bytes, other.page_bytes);
}

void DiskStoreImpl::CheckWritable() const {
  if (read_only_)
    throw Error(ErrorCode::kUsage, context_.dir + ": the store is open for reading only");
  if (!failed_) return;
  MutexLock lock(&failure_mu_);
  throw Error(
      ErrorCode::kIo,
      fmt::format("{}: nothing can be written since a sync failed ({}): {}", context_.dir, failure_,
                  options_.durability == Durability::kScratch
                      ? "start again from a snapshot"
                      : "open the store again, it is as the last commit left it"));
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
  context_.got += static_cast<int64_t>(keys.size());
  context_.found += static_cast<int64_t>(total);
  return total;
}

template <typename F>
void DiskStoreImpl::Write(std::span<const uint64_t> keys, F f) {
  CheckWritable();
  Array<KeyItem> items, sorting;
  for (size_t begin = 0; begin < keys.size(); begin += budget_.batch_keys) {
    const auto part = keys.subspan(begin, std::min(budget_.batch_keys, keys.size() - begin));
    SortKeys(part, &items, &sorting);
    ForEachPartition(context_.layout, items, [&](int p, std::span<const KeyItem> share) {
      merger_->WaitForRoom();
      f(partition(p), share, begin);
    });
    merger_->Advance(static_cast<int64_t>(part.size()));
  }
}

void DiskStoreImpl::Put(std::span<const uint64_t> keys, const std::byte* rows) {
  Write(keys, [&](DiskPartition& partition, std::span<const KeyItem> items, size_t begin) {
    partition.Put(items, rows + begin * row_bytes());
  });
  put_ += static_cast<int64_t>(keys.size());
}

void DiskStoreImpl::Delete(std::span<const uint64_t> keys) {
  Write(keys, [](DiskPartition& partition, std::span<const KeyItem> items, size_t) {
    partition.Delete(items);
  });
  deleted_ += static_cast<int64_t>(keys.size());
}

// What a failed write leaves is written again; what a failed sync leaves nobody knows.
DiskManifest DiskStoreImpl::FlushAndSync(bool seal) {
  std::vector<DiskPartition::Version> versions;
  int64_t files = 0;
  for (const auto& partition : partitions_) {
    versions.push_back(partition->Flush(seal));
    files += versions.back().files_to_sync();
  }
  DiskManifest manifest;
  manifest.layout = context_.layout;
  try {
    // At once, because the file system makes what comes together durable together.
    Workers workers("disk-sync", static_cast<int>(std::clamp<int64_t>(files / 4, 1, 8)));
    workers.Run(static_cast<int64_t>(versions.size()), [&](int64_t p, int) {
      const DiskPartition::Version& version = versions[static_cast<size_t>(p)];
      if (version.base != nullptr) version.base->Sync();
      for (const RowSources::Log& log : version.unsynced) log.log->file->Sync();
      partition(static_cast<int>(p)).MarkSynced(version);
    });
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
    if (renamed) {
      FailWrites(e.what());
      files_.Hold();  // for good: either manifest may be the one that stays
    }
    throw;
  }
  files_.SetCommitted(FilesOf(context_.dir, manifest));
  manifest_ = std::move(manifest);
  commits_ = manifest_.commit;
}

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
  MakeDurableDirectory(env, dir);
  if (!env.List(dir).empty())
    throw Error(ErrorCode::kUsage, dir + ": is not empty; name a new directory for the snapshot");
  DiskManifest manifest;
  if (options_.durability == Durability::kScratch) {
    manifest = FlushAndSync(true);
  } else {
    CommitLocked(true);
    manifest = manifest_;
  }
  try {
    LinkStore(env, context_.dir, manifest, dir);
  } catch (const Error&) {  // so that the call can be repeated
    RemoveStore(env, dir, manifest);
    throw;
  }
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
    total.Add(s);
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
  stats.got = context_.got;
  stats.found = context_.found;
  stats.put = put_;
  stats.deleted = deleted_;
  stats.filtered = filtered_;
  stats.log_bytes_written = context_.log_bytes_written;
  stats.direct = context_.direct;
  for (const auto& partition : partitions_) stats.direct = stats.direct && partition->direct();
  readers_.AddTo(&stats);
  if (merger_) merger_->AddTo(&stats);
  return stats;
}

}  // namespace terrace
