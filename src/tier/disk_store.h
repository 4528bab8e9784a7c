// A store of fixed-size rows by 64-bit key on an SSD: the disk tier, and the format of snapshots.
//
// Keys are mixed by a bijection and cut into partitions by the top bits of the mix. A partition is
// an immutable base file of pages sorted by mix, and append-only logs of pages written since, with
// an exact index in memory of what is in the logs. A background thread merges logs into a new base.
// docs/disk_format.md has the files.
//
// Threads: any thread may call anything but the destructor. A batch takes a partition's lock once;
// it is atomic and ordered by partition, not as a whole. One process opens a directory for writing.
// Failure: Error(kIo) from the system, Error(kCorruption) with file and page. A Put or Delete that
// throws may have taken effect in some partitions; nothing that was committed is touched and the
// same call may be repeated. When a sync fails nothing can be written or committed any more (reads
// go on): open the store again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"

namespace terrace {

enum class Durability {
  kCommit,   // a crash, or a close without Commit, leaves the last commit
  kScratch,  // files serve this process alone: what an earlier one left is removed, Commit is an
             // error
};

// Whether a row may be dropped.
using RowTest = std::function<bool(const std::byte* row)>;

struct DiskOptions {
  static constexpr size_t kMinRowBytes = 16, kMaxRowBytes = 2048;
  static constexpr int kMaxPartitions = 4096;

  size_t row_bytes = 0;  // 0: as the store has it
  // A power of two; 0: as the store has it, in a new one by memory_bytes, 64 at least.
  int partitions = 0;
  size_t memory_bytes = 64 << 20;  // fences, filters, index of the logs, buffers
  Durability durability = Durability::kCommit;
  // Of a scratch store: it starts as the store in this directory is, a snapshot or one that no
  // process writes to, by links to its files. That one is not changed. Empty: it starts empty.
  std::string start_from;
  // False: nothing is merged but by Settle and Merge; a full index then makes Put merge by itself.
  bool background = true;
  bool direct = true;  // IO past the page cache, where the file system can
  IoEngine io = IoEngine::kAuto;
  size_t page_bytes = 0;   // 0: from row_bytes; else a power of two from 512 on
  size_t index_bytes = 0;  // for the index of the logs; 0: what memory_bytes leaves
  // For rows not yet written; 0: an eighth of memory_bytes. Rows that come again soon gain by more.
  size_t buffer_bytes = 0;
  int readers = 2;        // gets that run at the same time, at most; others wait
  size_t batch_keys = 0;  // keys of a get or put that are looked up at once; 0: from memory_bytes
  // Asked at the start of each merge: rows that the test it returns is true for are dropped by that
  // merge. Null: none. What it is true for once must stay of no use: when a merge comes by is left
  // open.
  std::function<RowTest()> due;
  Env* env = &PosixEnv();
};

struct PartitionStats {
  int64_t base_rows = 0, base_pages = 0;
  int64_t log_rows = 0;  // rows and tombstones on log pages and in the buffer
  int64_t log_pages = 0;
  int64_t file_bytes = 0;  // of base and logs
  int64_t logs = 0;        // files
  int64_t log_keys = 0;    // distinct keys in the logs and in the buffer
  int64_t tombstones = 0;  // of these
  int64_t new_keys = 0;    // of these, certainly not in the base

  // Puts are blind: how many of the logs' keys are in the base too is known when they are merged.
  int64_t rows_min() const {
    return std::max<int64_t>(std::max(base_rows + new_keys, log_keys) - tombstones, 0);
  }
  int64_t rows_max() const { return base_rows + log_keys - tombstones; }
  void Add(const PartitionStats& other);
};

struct DiskStats {
  size_t row_bytes = 0, page_bytes = 0;
  uint64_t commits = 0;
  std::vector<PartitionStats> partitions;
  PartitionStats total;
  int64_t pinned_bytes = 0;  // of files kept for the last commit alone
  // Memory by use. index_limit is what the budget leaves to the index.
  int64_t fence_bytes = 0, filter_bytes = 0, index_bytes = 0, buffer_bytes = 0, index_limit = 0;
  double log_share = 0;    // f: log_keys / base_rows
  double filter_bits = 0;  // per row of a base
  // Since opening. page_reads counts IOs, pages_read what they brought.
  int64_t got = 0, found = 0, put = 0, deleted = 0, page_reads = 0, pages_read = 0;
  int64_t filtered = 0;  // absent keys that cost no read
  int64_t log_bytes_written = 0, merge_bytes_read = 0, merge_bytes_written = 0;
  int64_t merges = 0, log_rewrites = 0;
  int64_t expired = 0;        // rows that merges dropped because they were due
  std::string engine;         // "io_uring" or "threads"
  bool direct = false;        // past the page cache
  std::string merge_failure;  // why the last merge failed, empty if it did not

  int64_t memory_bytes() const { return fence_bytes + filter_bytes + index_bytes + buffer_bytes; }
  // Counts and bytes of another store, for a sum over several.
  void Add(const DiskStats& other);
};

class DiskStore {
 public:
  // Opens the store in `dir`, or creates one there. A store is as its last commit left it.
  static std::unique_ptr<DiskStore> Open(const std::string& dir, const DiskOptions& options);
  // A snapshot, or a store no process writes to. Nothing in `dir` is changed.
  static std::unique_ptr<DiskStore> OpenReadOnly(const std::string& dir,
                                                 const DiskOptions& options);
  virtual ~DiskStore() = default;  // what was not committed is lost

  virtual size_t row_bytes() const = 0;
  virtual int partitions() const = 0;
  virtual int PartitionOf(uint64_t key) const = 0;

  // Any number of keys in any order; duplicates are fine. found[i] becomes 1 or 0; the row goes to
  // rows + i * row_bytes, which is left alone where the key is absent. Returns the number found.
  virtual size_t Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) = 0;
  // Inserts or replaces; of duplicates in the batch the last one stays.
  virtual void Put(std::span<const uint64_t> keys, const std::byte* rows) = 0;
  virtual void Delete(std::span<const uint64_t> keys) = 0;

  // Makes all calls that have returned durable, all or nothing.
  virtual void Commit() = 0;
  // A copy of the store as it is now in a new directory, by hard links, or by copies where the file
  // system has none; durable when this returns. Commits first, unless the store is a scratch store.
  // What both share takes its space once.
  virtual void Snapshot(const std::string& dir) = 0;

  // All rows of partitions [first, end), ordered by PartitionOf and within it by the mix of the
  // key, in blocks. Each partition is seen as it was when the scan came to it.
  using ScanSink = std::function<void(std::span<const uint64_t> keys, const std::byte* rows)>;
  virtual void Scan(int first, int end, const ScanSink& sink) = 0;

  // Returns when no merge is due or under way. Throws what a merge failed with.
  virtual void Settle() = 0;
  // Merges all logs into the bases.
  virtual void Merge() = 0;

  virtual DiskStats stats() const = 0;
};

struct VerifyReport {
  int64_t files = 0, pages = 0, rows = 0, bytes = 0;
  std::vector<std::string> problems;  // file, page and what is wrong
};

// Reads every page that the manifest in `dir` names, and checks checksums, order, fences, filters
// and counts. `progress(bytes done, bytes in all)` is called now and then. Throws
// Error(kCorruption) if the manifest itself cannot be read.
VerifyReport VerifyStore(Env& env, const std::string& dir,
                         const std::function<void(int64_t, int64_t)>& progress);

}  // namespace terrace
