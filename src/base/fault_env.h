// An Env for tests that fails on demand, runs out of space and loses power.
//
//   for (int n = 0;; ++n) {
//     FaultEnv env(PosixEnv());
//     env.FailAt(n);
//     ... run, expect an Error or success ...
//     if (!env.failed()) break;  // there is no n-th operation
//   }
//
// It works on the real files of the Env below. All calls are safe from any thread. Failures are
// Error(kIo) with the text of a real one.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/fault_journal.h"
#include "base/mutex.h"

namespace terrace {

class FaultEnv : public Env {
 public:
  // Kinds of operations, to be combined.
  enum Kind : uint32_t {
    kRead = 1 << 0,       // of a PageFile or a SequentialFile
    kBatchRead = 1 << 1,  // each read of a batch
    kWrite = 1 << 2,      // Write and Append
    kSync = 1 << 3,       // Sync, and Close of a WritableFile
    kTruncate = 1 << 4,
    kOpen = 1 << 5,
    kCreate = 1 << 6,
    kRename = 1 << 7,
    kRemove = 1 << 8,  // of files and directories
    kLink = 1 << 9,
    kMakeDirectory = 1 << 10,
    kSyncDirectory = 1 << 11,
    kInspect = 1 << 12,  // List, FileSize and Status
    kLock = 1 << 13,
    kAll = (1 << 14) - 1,
  };

  struct Fault {
    int64_t at = 0;         // the operation that fails: of those of `kinds` from now on, from 0
    uint32_t kinds = kAll;  // of Kind
    bool lasting = false;   // all after it fail too
    int error = EIO;
    bool short_write = false;  // the first half of a write that fails reaches the file
  };

  explicit FaultEnv(Env& base) : base_(base) {}

  void FailAt(int64_t n) { Inject({.at = n}); }
  void Inject(const Fault& fault) EXCLUDES(mu_);  // in place of the one before
  bool failed() const EXCLUDES(mu_);              // something was made to fail
  std::string failure() const EXCLUDES(mu_);      // what, or nothing: for messages of tests
  // Operations of these kinds so far.
  int64_t operations(uint32_t kinds = kAll) const EXCLUDES(mu_);

  // Bytes that can still be written; then writes fail with ENOSPC after the part that fits.
  void SetSpace(int64_t bytes) EXCLUDES(mu_);

  // Cuts the power: undoes a part of what is not durable (FaultJournal::Crash has the rules) and
  // frees the locks. All calls of this Env and its files throw from now on; another Env opens what
  // is left. A change is durable after: data, a Sync or Close of its file; a name, SyncDirectory of
  // its directory.
  void Crash(uint64_t seed) EXCLUDES(mu_);

  std::unique_ptr<SequentialFile> OpenForRead(const std::string& path) override;
  std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) override;
  void Rename(const std::string& from, const std::string& to) override;
  void Remove(const std::string& path) override;
  bool Exists(const std::string& path) override;
  int64_t FileSize(const std::string& path) override;
  FileStatus Status(const std::string& path) override;
  std::vector<std::string> Glob(const std::string& pattern) override;
  std::unique_ptr<PageFile> OpenPages(const std::string& path, PageMode mode, bool direct) override;
  std::unique_ptr<BatchReader> NewBatchReader(const BatchReaderOptions& options) override;
  void MakeDirectory(const std::string& path) override;
  void RemoveDirectory(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;
  std::vector<std::string> List(const std::string& path) override;
  void SyncDirectory(const std::string& path) override;
  void Link(const std::string& from, const std::string& to) override;
  std::unique_ptr<FileLock> Lock(const std::string& path) override;
  std::unique_ptr<FileLock> TryLockDirectory(const std::string& path, LockMode mode) override;

 private:
  class Reader;
  class Writer;
  class Pages;
  class Batch;
  class Held;

  static constexpr int kKinds = 14;

  void ThrowIfCrashed(const std::string& path) const REQUIRES(mu_);
  // Counts an operation; true if it must fail.
  bool Due(Kind kind, const std::string& path) REQUIRES(mu_);
  void Step(Kind kind, const std::string& path, std::string_view call) REQUIRES(mu_);
  void StepAlone(Kind kind, const std::string& path, std::string_view call) EXCLUDES(mu_);
  std::unique_ptr<FileLock> Keep(std::unique_ptr<FileLock> lock) REQUIRES(mu_);
  // How many bytes of a write reach the file, in whole `unit`s if not all; *error is 0 if all do.
  size_t BytesToWrite(const std::string& path, size_t size, size_t unit, int* error) REQUIRES(mu_);
  // Tells the journal that `path` is about to be created or emptied, and does it by `create`.
  template <typename Create>
  auto CreateFile(const std::string& path, const Create& create) REQUIRES(mu_);

  Env& base_;

  mutable Mutex mu_;
  FaultJournal journal_ GUARDED_BY(mu_);
  Fault fault_ GUARDED_BY(mu_);
  int64_t until_fault_ GUARDED_BY(mu_) = -1;  // operations before it; -1: none
  int64_t counts_[kKinds] GUARDED_BY(mu_) = {};
  std::string failure_ GUARDED_BY(mu_);
  int64_t space_ GUARDED_BY(mu_) = -1;  // -1: no limit
  bool crashed_ GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<std::unique_ptr<FileLock>>> locks_ GUARDED_BY(mu_);
};

}  // namespace terrace
