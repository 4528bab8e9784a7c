// One partition of a DiskStore: base, logs, the index of the logs, and the buffer of newest rows.
//
// Any thread may call; each call takes the partition's lock. Files once written are immutable and
// shared, so what Lookup or Seal hands out stays readable whatever happens to the partition later.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "tier/disk_buffer.h"
#include "tier/disk_manifest.h"
#include "tier/disk_store.h"
#include "tier/key_sort.h"
#include "tier/log_buffer.h"
#include "tier/log_index.h"
#include "tier/sorted_rows.h"

namespace terrace {

// What the partitions of a store have in common.
struct DiskContext {
  Env& env;
  const std::string dir;
  const PageLayout layout;
  const bool direct;
  const bool use_filters;
  const size_t buffer_rows;  // of each partition; a multiple of layout.rows_per_page
  const size_t io_bytes;     // of one write, at least
  Mutex flush_mu{};          // taken after a partition's
  AlignedBuffer flushed GUARDED_BY(flush_mu) = {};  // pages on their way to a log
  std::atomic<uint64_t> next_file{1};
  // Sums over the partitions.
  std::atomic<int64_t> index_bytes{0}, fence_bytes{0}, filter_bytes{0};
  std::atomic<int64_t> pages{0};  // of bases and logs in use
  std::atomic<int64_t> log_bytes_written{0};
  std::atomic<int64_t> got{0}, found{0};  // keys asked for, and those there were

  double absent_share() const {
    const auto asked = static_cast<double>(std::max<int64_t>(got, 1));
    return static_cast<double>(got - found) / asked;
  }
};

// Pages to read for a batch, and what to look for on them.
struct PageRequests {
  struct File {
    std::shared_ptr<void> owner;  // keeps the file open
    PageFile* file;
    uint64_t number;
    bool is_log;
  };
  struct Request {
    uint64_t mix;
    uint32_t index;
    uint32_t file;  // in files
    uint32_t page;
  };
  std::vector<File> files;
  Array<Request> requests;  // sorted by file and page
  int64_t filtered = 0;     // absent keys that need no read
};

class DiskPartition {
 public:
  DiskPartition(DiskContext* context, int number);
  ~DiskPartition();
  DiskPartition(const DiskPartition&) = delete;
  DiskPartition& operator=(const DiskPartition&) = delete;

  // Opens the base, then opens and reads the logs. Each is called once, first.
  struct LoadScratch {
    Array<KeyItem> items, sorting;
  };
  void LoadBase(const ManifestPartition& manifest) EXCLUDES(mu_);
  void LoadLogs(const ManifestPartition& manifest, LoadScratch* scratch) EXCLUDES(mu_);

  // `items` are sorted by mix, roughly. Copies rows that are in the buffer and sets found[index]
  // for these and for absent keys (0); the others become requests.
  void Lookup(std::span<const KeyItem> items, std::byte* rows, uint8_t* found,
              PageRequests* requests) EXCLUDES(mu_);
  // In the order of items.
  void Put(std::span<const KeyItem> items, const std::byte* rows) EXCLUDES(mu_);
  void Delete(std::span<const KeyItem> items) EXCLUDES(mu_);

  // What the partition consists of now; all of it is on pages, in files that are not written to any
  // more if `seal`.
  struct Version {
    ManifestPartition manifest;
    std::shared_ptr<BaseFile> base;
    std::vector<RowSources::Log> unsynced;

    int64_t files_to_sync() const {
      return static_cast<int64_t>(unsynced.size()) + (base != nullptr && !base->synced());
    }
  };
  Version Flush(bool seal) EXCLUDES(mu_);
  void MarkSynced(const Version& version) EXCLUDES(mu_);

  // All rows, the buffer as a copy.
  RowSources Sources() EXCLUDES(mu_);

  // What a merge starts from: all entries on pages of closed logs.
  struct Frozen {
    RowSources sources;
    uint32_t end = 0;  // the first page number after them
    int64_t keys = 0;  // distinct, in the logs
  };
  Frozen Freeze() EXCLUDES(mu_);
  // Replaces what was frozen by `base` (null: nothing is left), or its logs by `log`, in which page
  // i starts with mix fences[i]. Returns the paths of the files that are no longer used.
  std::vector<std::string> InstallBase(const Frozen& frozen, std::shared_ptr<BaseFile> base)
      EXCLUDES(mu_);
  std::vector<std::string> InstallLog(const Frozen& frozen, std::shared_ptr<LogFile> log,
                                      std::span<const uint64_t> fences) EXCLUDES(mu_);

  PartitionStats stats() const EXCLUDES(mu_);
  // No file goes through the page cache.
  bool direct() const EXCLUDES(mu_);

 private:
  struct OpenLog {
    std::shared_ptr<LogFile> log;
    uint32_t first = 0;  // number of its first page among the pages of all logs
  };

  // May be in the base; false is certain.
  bool InBase(uint64_t mix) const REQUIRES(mu_);
  void Prefetch(uint64_t mix) const REQUIRES(mu_);
  void Write(uint64_t mix, const std::byte* row) REQUIRES(mu_);
  void PutPages(std::span<const KeyItem> items, const std::byte* rows) REQUIRES(mu_);
  void CountKey(uint64_t mix, LogPlace before, bool tombstone) REQUIRES(mu_);
  // Writes entries, in the order of their mixes, to pages at the end of the log; the index and
  // counts follow. Nothing has changed if this throws: the next pages are written at the same
  // place.
  void AppendToLog(std::span<const PageEntry> entries) REQUIRES(mu_) EXCLUDES(context_.flush_mu);
  void WriteLogPages(std::span<const PageEntry> entries) REQUIRES(mu_) EXCLUDES(context_.flush_mu);
  // Writes the buffer to the log: all of it, or what makes room.
  void FlushBuffer(bool everything) REQUIRES(mu_) EXCLUDES(context_.flush_mu);
  void OpenForAppend() REQUIRES(mu_);
  // Opens the log and appends its entries to `items`: hash and place in the index.
  void ReadLog(const ManifestLog& entry, Array<KeyItem>* items) REQUIRES(mu_);
  // From items in the order they were written.
  void BuildIndex(LoadScratch* scratch) REQUIRES(mu_);
  void SetBase(std::shared_ptr<BaseFile> base) REQUIRES(mu_);
  // Tells the context how much the partition uses.
  void CountUse() REQUIRES(mu_);
  std::vector<std::string> DropFrozenLogs(const Frozen& frozen) REQUIRES(mu_);
  uint32_t next_page() const REQUIRES(mu_);

  DiskContext& context_;
  const PageLayout& layout_;
  const int number_;

  mutable Mutex mu_;
  std::shared_ptr<BaseFile> base_ GUARDED_BY(mu_);
  std::vector<OpenLog> logs_ GUARDED_BY(mu_);  // oldest first
  bool appending_ GUARDED_BY(mu_) = false;     // the last log takes more pages
  LogIndex index_ GUARDED_BY(mu_);
  LogBuffer buffer_ GUARDED_BY(mu_);
  int64_t tombstones_ GUARDED_BY(mu_) = 0;  // keys whose newest entry is one
  int64_t new_keys_ GUARDED_BY(mu_) = 0;    // keys in the index that are certainly not in the base
  int64_t counted_index_ GUARDED_BY(mu_) = 0, counted_pages_ GUARDED_BY(mu_) = 0;
};

}  // namespace terrace
