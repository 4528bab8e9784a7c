// The disk store behind disk_store.h: disk_open.cc has its beginning and end, disk_store.cc the
// rest.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "tier/disk_budget.h"
#include "tier/disk_files.h"
#include "tier/disk_manifest.h"
#include "tier/disk_merger.h"
#include "tier/disk_partition.h"
#include "tier/disk_reader.h"
#include "tier/disk_store.h"

namespace terrace {

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
  // Opens what the manifest names, and starts the merger.
  void LoadPartitions(const DiskManifest& manifest);
  // Of a scratch store: nothing stays in its directory.
  void RemoveScratch();
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

  std::atomic<int64_t> put_{0}, deleted_{0}, filtered_{0};
  std::optional<DiskMerger> merger_;  // absent in a read-only store; stops before all above
};

}  // namespace terrace
