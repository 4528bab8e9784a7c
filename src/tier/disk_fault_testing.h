// A fixed piece of work on a DiskStore that knows at each step what the store must hold: run with
// faults, repeated where a step fails, and compared with what may be left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {

enum class FaultOp { kPut, kDelete, kGet, kScan, kCommit, kMerge, kSettle, kSnapshot, kReopen };
struct FaultStep {
  FaultOp op;
  uint64_t first = 0, end = 0;  // keys
};
inline constexpr FaultStep kFaultSteps[] = {
    {FaultOp::kPut, 0, 120},    {FaultOp::kCommit},        {FaultOp::kPut, 80, 220},
    {FaultOp::kDelete, 40, 60}, {FaultOp::kGet, 0, 250},   {FaultOp::kMerge},
    {FaultOp::kPut, 0, 50},     {FaultOp::kCommit},        {FaultOp::kDelete, 0, 30},
    {FaultOp::kScan},           {FaultOp::kSnapshot},      {FaultOp::kGet, 0, 250},
    {FaultOp::kPut, 10, 90},    {FaultOp::kMerge},         {FaultOp::kPut, 70, 140},
    {FaultOp::kReopen},         {FaultOp::kPut, 100, 180}, {FaultOp::kDelete, 0, 250},
    {FaultOp::kMerge},          {FaultOp::kCommit},        {FaultOp::kPut, 150, 160},
    {FaultOp::kReopen},         {FaultOp::kPut, 0, 64},    {FaultOp::kPut, 0, 64},
    {FaultOp::kPut, 0, 64},     {FaultOp::kSettle},        {FaultOp::kCommit},
    {FaultOp::kGet, 0, 250},
};

class FaultWork {
 public:
  FaultWork(Env* env, DiskOptions options) : options_(options) { options_.env = env; }

  // The first thing that was not as it should be.
  const std::string& problem() const { return problem_; }

  // Runs to the end, repeating what fails; `reason` is in the message of each failure. `failed` is
  // called before a step is repeated.
  template <typename F>
  void RunWithRepeats(const std::string& reason, F failed) {
    for (const FaultStep& step : kFaultSteps) {
      for (int attempt = 0; problem_.empty() && !Try(step); ++attempt) {
        if (attempt == 3) problem_ = "fails again and again: " + error_;
        ExpectClearError(reason);
        ExpectReadable(step);
        failed();
        if (error_.find("open the store again") != std::string::npos) store_.reset();
      }
    }
  }

  // Runs until something fails. True if nothing did.
  bool RunUntilFailure() {
    for (const FaultStep& step : kFaultSteps)
      if (!Try(step)) return false;
    return true;
  }

  void Close() { store_.reset(); }

  // What is left opens, and is the last commit, or, if that failed half-way, the one that followed.
  void ExpectLastCommit() {
    DiskOptions options = options_;
    options.env = &PosixEnv();
    const auto store = DiskStore::Open(dir(), options);
    ExpectCommitted(*store);
    const VerifyReport report = VerifyStore(PosixEnv(), dir(), {});
    if (!report.problems.empty()) Expect(report.problems[0]);
    if (snapshot_taken_) {
      const auto snapshot = DiskStore::OpenReadOnly(dir() + "_copy", options);
      Expect(StoreDifference(*snapshot, snapshot_));
    }
  }

  // The directory holds what the store and its last commit need, and nothing else.
  void ExpectNoLeftovers() {
    const DiskStats stats = store_->stats();
    const int64_t manifest = PosixEnv().FileSize(dir() + "/MANIFEST");
    const int64_t expected = stats.total.file_bytes + stats.pinned_bytes + manifest;
    if (const int64_t found = dir_.FileBytes("store"); found != expected)
      Expect(std::to_string(found) + " bytes of files, " + std::to_string(expected) + " in use");
  }

 private:
  std::string dir() const { return dir_.path() + "/store"; }

  void Expect(const std::string& difference) {
    if (problem_.empty() && !difference.empty())
      problem_ = difference + (error_.empty() ? "" : "; the last error was: " + error_);
  }

  static std::vector<uint64_t> Keys(uint64_t first, uint64_t end) {
    std::vector<uint64_t> keys;
    for (uint64_t key = first; key < end; ++key) keys.push_back(key);
    return keys;
  }

  bool Try(const FaultStep& step) {
    try {
      if (store_ == nullptr) Open();
      Do(step);
    } catch (const Error& e) {
      error_ = e.what();
      code_ = e.code();
      return false;
    }
    return true;
  }

  void Open() {
    auto store = DiskStore::Open(dir(), options_);
    ExpectCommitted(*store);
    store_ = std::move(store);
  }

  void ExpectCommitted(DiskStore& store) {
    const std::string difference = StoreDifference(store, committed_);
    if (!difference.empty() && committing_) {
      Expect(StoreDifference(store, now_));
      committed_ = now_;
    } else {
      Expect(difference);
    }
    now_ = committed_;
    committing_ = false;
  }

  void Do(const FaultStep& step) {
    const std::vector<uint64_t> keys = Keys(step.first, step.end);
    switch (step.op) {
      case FaultOp::kPut:
        return PutVersion(*store_, keys, version_++, &now_);
      case FaultOp::kDelete:
        return DeleteKeys(*store_, keys, &now_);
      case FaultOp::kGet:
        return Expect(GetDifference(*store_, keys, now_));
      case FaultOp::kScan:
        return Expect(Difference(ReadAll(*store_), now_));
      case FaultOp::kCommit:
        committing_ = true;
        store_->Commit();
        break;
      case FaultOp::kSnapshot:
        committing_ = true;
        store_->Snapshot(dir() + "_copy");
        snapshot_taken_ = true;
        snapshot_ = now_;
        break;
      case FaultOp::kMerge:
        return store_->Merge();
      case FaultOp::kSettle:
        return store_->Settle();
      case FaultOp::kReopen:
        store_.reset();
        return Open();
    }
    committing_ = false;
    committed_ = now_;
  }

  void ExpectClearError(const std::string& reason) {
    const bool clear = code_ == ErrorCode::kIo && error_.find(dir_.path()) != std::string::npos &&
                       error_.find(reason) != std::string::npos;
    if (!clear) Expect("not a clear error");
  }

  // All but what the failed step was about to change is there.
  void ExpectReadable(const FaultStep& step) {
    if (store_ == nullptr) return;
    const bool writes = step.op == FaultOp::kPut || step.op == FaultOp::kDelete;
    std::vector<uint64_t> keys;
    for (uint64_t key : Keys(0, 300))
      if (!writes || key < step.first || key >= step.end) keys.push_back(key);
    Expect(GetDifference(*store_, keys, now_));
  }

  DiskOptions options_;
  TestDir dir_;
  std::unique_ptr<DiskStore> store_;
  uint64_t version_ = 1;
  Contents now_, committed_, snapshot_;
  bool committing_ = false;  // the last commit failed: it may be there or not
  bool snapshot_taken_ = false;
  std::string error_;  // of the last step that failed
  ErrorCode code_ = ErrorCode::kInternal;
  std::string problem_;
};

}  // namespace terrace
