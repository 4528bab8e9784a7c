// Scratch stores whose files fail: snapshots that were taken stay whole, and so does what they were
// taken of.

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

DiskOptions Tiny(bool background) {
  DiskOptions options;
  options.row_bytes = 24;
  options.page_bytes = 512;
  options.partitions = 2;
  options.memory_bytes = 8 << 20;
  options.index_bytes = 2000;  // puts have to merge
  options.background = background;
  options.durability = Durability::kScratch;
  return options;
}

enum class Op { kPut, kDelete, kMerge, kSnapshot, kRestart };
struct Step {
  Op op;
  uint64_t first = 0, end = 0;  // keys; of a restart: the snapshot
};
constexpr Step kSteps[] = {
    {Op::kPut, 0, 120},   {Op::kSnapshot},     {Op::kPut, 80, 220},   {Op::kDelete, 40, 60},
    {Op::kMerge},         {Op::kSnapshot},     {Op::kPut, 0, 50},     {Op::kSnapshot},
    {Op::kRestart, 1},    {Op::kPut, 30, 130}, {Op::kSnapshot},       {Op::kMerge},
    {Op::kPut, 200, 260}, {Op::kSnapshot},     {Op::kDelete, 0, 250}, {Op::kMerge},
    {Op::kSnapshot},      {Op::kRestart, 4},   {Op::kSnapshot},
};

class Work {
 public:
  Work(Env* env, bool background) : options_(Tiny(background)) { options_.env = env; }

  const std::string& problem() const { return problem_; }

  // Runs until something fails. True if nothing did.
  bool RunUntilFailure() {
    for (const Step& step : kSteps)
      if (!Try(step)) return false;
    return true;
  }

  // Runs to the end, repeating what fails.
  void RunWithRepeats() {
    for (const Step& step : kSteps) {
      for (int attempt = 0; problem_.empty() && !Try(step); ++attempt) {
        if (attempt == 3) problem_ = "fails again and again: " + error_;
        ExpectReadable(step);
        if (error_.find("start again from a snapshot") == std::string::npos) continue;
        store_.reset();
        from_ = snapshots_.empty() ? 0 : snapshots_.size();
        now_ = snapshots_.empty() ? Contents() : snapshots_.back();
      }
    }
  }

  void Close() { store_.reset(); }

  // All snapshots that were taken are whole, and one that failed half-way is, if it is there.
  void ExpectSnapshots() {
    for (size_t i = 0; i < snapshots_.size(); ++i) ExpectSnapshot(Name(i), snapshots_[i]);
    const std::string next = Name(snapshots_.size());
    if (PosixEnv().Exists(next + "/MANIFEST")) ExpectSnapshot(next, now_);
    if (snapshots_.empty()) return;
    DiskOptions options = options_;
    options.env = &PosixEnv();
    options.start_from = Name(snapshots_.size() - 1);
    Expect(StoreDifference(*DiskStore::Open(live(), options), snapshots_.back()));
  }

 private:
  std::string live() const { return dir_.path() + "/live"; }
  std::string Name(size_t i) const { return dir_.path() + "/snapshots/" + std::to_string(i); }

  void Expect(const std::string& difference) {
    if (problem_.empty() && !difference.empty())
      problem_ = difference + (error_.empty() ? "" : "; the last error was: " + error_);
  }

  void ExpectSnapshot(const std::string& name, const Contents& contents) {
    DiskOptions options = options_;
    options.env = &PosixEnv();
    options.index_bytes = 0;
    try {
      Expect(StoreDifference(*DiskStore::OpenReadOnly(name, options), contents));
      const VerifyReport report = VerifyStore(PosixEnv(), name, {});
      if (!report.problems.empty()) Expect(report.problems[0]);
    } catch (const Error& e) {
      Expect(e.what());
    }
  }

  bool Try(const Step& step) {
    try {
      if (step.op == Op::kRestart) {
        store_.reset();
        from_ = step.first + 1;
        now_ = snapshots_[step.first];
      }
      if (store_ == nullptr) Open();
      Do(step);
    } catch (const Error& e) {
      error_ = e.what();
      return false;
    }
    return true;
  }

  void Open() {
    DiskOptions options = options_;
    if (from_ > 0) options.start_from = Name(from_ - 1);
    store_ = DiskStore::Open(live(), options);
    Expect(StoreDifference(*store_, now_));
  }

  void Do(const Step& step) {
    std::vector<uint64_t> keys;
    for (uint64_t key = step.first; key < step.end; ++key) keys.push_back(key);
    switch (step.op) {
      case Op::kPut:
        return PutVersion(*store_, keys, version_++, &now_);
      case Op::kDelete:
        return DeleteKeys(*store_, keys, &now_);
      case Op::kMerge:
        return store_->Merge();
      case Op::kSnapshot:
        store_->Snapshot(Name(snapshots_.size()));
        snapshots_.push_back(now_);
        return;
      case Op::kRestart:
        return;
    }
  }

  // All but what the failed step was about to change is there.
  void ExpectReadable(const Step& step) {
    if (store_ == nullptr) return;
    const bool writes = step.op == Op::kPut || step.op == Op::kDelete;
    std::vector<uint64_t> keys;
    for (uint64_t key = 0; key < 300; ++key)
      if (!writes || key < step.first || key >= step.end) keys.push_back(key);
    Expect(GetDifference(*store_, keys, now_));
  }

  DiskOptions options_;
  TestDir dir_;
  std::unique_ptr<DiskStore> store_;
  uint64_t version_ = 1;
  size_t from_ = 0;  // the snapshot the live store started from, plus one
  Contents now_;
  std::vector<Contents> snapshots_;  // that were taken
  std::string error_;                // of the last step that failed
  std::string problem_;
};

// Seed 0 loses all that is not durable, the others a part of it.
void CutPowerAtEach(bool background, bool lose_all) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.Inject({.at = n, .lasting = true});
    Work work(&env, background);
    const bool done = work.RunUntilFailure();
    env.Crash(lose_all ? 0 : static_cast<uint64_t>(n) + 2);
    work.Close();
    work.ExpectSnapshots();
    ASSERT_EQ(work.problem(), "") << "operation " << n << ": " << env.failure();
    if (done) break;
  }
}

TEST(DiskSnapshotFault, APowerCutAtAnyOperationLeavesAllSnapshots) {
  CutPowerAtEach(false, true);
  CutPowerAtEach(false, false);
}

TEST(DiskSnapshotFault, APowerCutBesideMergesInTheBackgroundLeavesAllSnapshots) {
  CutPowerAtEach(true, true);
  CutPowerAtEach(true, false);
}

TEST(DiskSnapshotFault, EveryOperationMayFailAndIsRepeated) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.FailAt(n);
    Work work(&env, false);
    work.RunWithRepeats();
    const bool failed = env.failed();
    env.Crash(0);
    work.Close();
    work.ExpectSnapshots();
    ASSERT_EQ(work.problem(), "") << "operation " << n << ": " << env.failure();
    if (!failed) break;
  }
}

TEST(DiskSnapshotFault, AFullDiskIsAnErrorUntilThereIsSpace) {
  for (int64_t space = 0;; space += 900) {
    FaultEnv env(PosixEnv());
    env.SetSpace(space);
    Work work(&env, false);
    const bool done = work.RunUntilFailure();
    work.Close();
    work.ExpectSnapshots();
    ASSERT_EQ(work.problem(), "") << "space " << space << ": " << env.failure();
    if (done) break;
  }
}

}  // namespace
}  // namespace terrace
