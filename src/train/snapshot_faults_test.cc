// Faults of the disk below a run that takes snapshots: training goes on where it can, and what is
// left in the snapshots directory can always be gone on from, bit-equal.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/random.h"
#include "base/test_dir.h"
#include "checkpoint/snapshot.h"
#include "train/routed_env_testing.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  bool failed = false;  // by an Error
  ErrorCode code{};
  std::string error;
  int64_t trained = 0;  // batches
  RunReport report;
};

class SnapshotFaults : public ::testing::Test {
 protected:
  static constexpr int64_t kSnapshots = 4;  // of a run: three, and one at its end

  RunConfig Config(bool tiered, int64_t keep_last) const {
    std::vector<std::string> sets = {"data.synthetic.train_examples=840",
                                     "data.synthetic.test_examples=40",
                                     "data.synthetic.features=200",
                                     "train.batch=60",
                                     "data.shuffle=100",
                                     "data.threads=1",
                                     "tables.main.admission.by=count",
                                     "tables.main.admission.count=2",
                                     "tables.main.life.unseen=6",
                                     "snapshot.dir=" + Snapshots(),
                                     "snapshot.every=4",
                                     fmt::format("snapshot.keep_last={}", keep_last)};
    if (tiered) {
      sets.push_back("tiers.disk.path=" + dir_.path() + "/rows");
      sets.push_back("tiers.disk.memory=6MB");
      sets.push_back("train.window=2");
    }
    return SmallRun(sets);
  }

  Outcome Run(Env& env, const RunConfig& config, bool resume = false) {
    Outcome outcome;
    RunOptions options;
    options.show_progress = false;
    options.resume = resume;
    options.memory_rows = 400;
    options.open_store = [](const std::string& path, DiskOptions store) {
      if (store.partitions != 0) store.partitions = 2;
      return DiskStore::Open(path, store);
    };
    options.after_batch = [&](int64_t) { ++outcome.trained; };
    const std::atomic<bool> stop{false};
    try {
      outcome.report = TrainModel(env, config, options, stop);
    } catch (const Error& e) {
      outcome.failed = true;
      outcome.code = e.code();
      outcome.error = e.what();
    }
    return outcome;
  }

  std::string Snapshots() const { return dir_.path() + "/snapshots"; }
  std::vector<SnapshotEntry> Found() const {
    if (!std::filesystem::exists(Snapshots())) return {};
    return ListSnapshots(PosixEnv(), Snapshots());
  }
  void Clear() {
    std::filesystem::remove_all(Snapshots());
    std::filesystem::remove_all(dir_.path() + "/rows");
  }

  // The digest of a run without faults.
  void ExpectedRun() {
    const Outcome outcome = Run(PosixEnv(), Config(false, 10));
    ASSERT_EQ(outcome.error, "");
    ASSERT_EQ(outcome.report.snapshots.taken, kSnapshots);
    expected_ = outcome.report;
    Clear();
  }
  void ExpectTheModel(const RunReport& report) {
    EXPECT_EQ(report.model_digest, expected_.model_digest);
    EXPECT_EQ(report.train_loss, expected_.train_loss);
    EXPECT_EQ(report.evaluations.back().metrics.logloss,
              expected_.evaluations.back().metrics.logloss);
  }

  // Every snapshot that is there is whole; going on from the last, or from the one before it, ends
  // with the right model.
  void ExpectToGoOn(bool tiered, bool from_the_one_before) {
    std::vector<SnapshotEntry> found = Found();
    for (const SnapshotEntry& entry : found) {
      const auto snapshot = Snapshot::Open(PosixEnv(), entry.path);
      for (const SnapshotFile& file : snapshot->info().files) (void)snapshot->ReadFile(file.name);
      for (const SnapshotTable& table : snapshot->info().tables)
        EXPECT_EQ(VerifyStore(PosixEnv(), snapshot->TablePath(table.name), {}).problems,
                  std::vector<std::string>());
    }
    if (from_the_one_before && found.size() > 1) {
      std::filesystem::remove_all(found.back().path);
      found.pop_back();
    }
    const Outcome again = Run(PosixEnv(), Config(tiered, 1), true);
    ASSERT_EQ(again.error, "");
    EXPECT_EQ(again.report.resumed_from, found.empty() ? -1 : found.back().batch);
    ExpectTheModel(again.report);
    for (const std::string& name : PosixEnv().List(Snapshots())) EXPECT_NE(name[0], '.') << name;
  }

  // What a run with a fault has done.
  void ExpectToHaveGoneOn(const Outcome& outcome) {
    if (!outcome.failed) {
      ExpectTheModel(outcome.report);
      EXPECT_EQ(outcome.report.snapshots.taken + outcome.report.snapshots.failed, kSnapshots);
      EXPECT_EQ(outcome.report.snapshots.failed > 0, !outcome.report.snapshots.failure.empty());
      return;
    }
    EXPECT_EQ(outcome.code, ErrorCode::kIo) << outcome.error;
    if (outcome.trained == 0) return;  // the directory could not be used at all
    EXPECT_EQ(outcome.trained, expected_.batches);
    EXPECT_THAT(outcome.error, HasSubstr("the last snapshot could not be written"));
    EXPECT_THAT(outcome.error, HasSubstr("go on with --resume"));
  }

  TestDir dir_;
  RunReport expected_;
};

// Of what came up.
struct Seen {
  int64_t faults = 0, failed_snapshots = 0, without_effect = 0, at_the_end = 0, at_the_start = 0;

  void Print(const char* of) const {
    fmt::print(
        "{}: {} faults: {} failed one snapshot or more but not the last, {} the last, {} the start "
        "of the run, {} nothing\n",
        of, faults, failed_snapshots, at_the_end, at_the_start, without_effect);
  }
  void Add(const Outcome& outcome) {
    ++faults;
    if (outcome.failed)
      ++(outcome.trained == 0 ? at_the_start : at_the_end);
    else
      ++(outcome.report.snapshots.failed > 0 ? failed_snapshots : without_effect);
  }
};

// From one operation that fails to the next that does; every one if TERRACE_EVERY_FAULT is set.
int64_t Step(int64_t n, uint64_t most) {
  if (std::getenv("TERRACE_EVERY_FAULT") != nullptr) return 1;
  return static_cast<int64_t>(1 + RandomBits(9, static_cast<uint64_t>(n)) % most);
}

// Tables in memory: all files are below the snapshots directory.
TEST_F(SnapshotFaults, AnyOperationMayFail) {
  ExpectedRun();
  Seen seen;
  int64_t operations = 0;
  {
    FaultEnv env(PosixEnv());
    ASSERT_EQ(Run(env, Config(false, 2)).error, "");
    operations = env.operations();
    Clear();
  }
  for (int64_t n = 0; n < operations && !HasFailure(); n += Step(n, 7)) {
    FaultEnv::Fault fault;
    fault.at = n;
    fault.error = n % 2 == 0 ? ENOSPC : EIO;
    fault.lasting = n % 5 == 0;
    fault.short_write = n % 3 == 0;
    FaultEnv env(PosixEnv());
    env.Inject(fault);
    SCOPED_TRACE(fmt::format("operation {} of {}", n, operations));
    const Outcome outcome = Run(env, Config(false, n % 3 == 0 ? 1 : 3));
    if (!env.failed()) continue;  // threads: one more or less
    SCOPED_TRACE(fmt::format("{}: {}", env.failure(), outcome.error));
    seen.Add(outcome);
    ExpectToHaveGoneOn(outcome);
    ExpectToGoOn(n % 4 == 0, n % 2 == 0);
    Clear();
  }
  seen.Print("tables in memory");
  EXPECT_GT(seen.faults, 40);
  EXPECT_GT(seen.failed_snapshots, 0);
  EXPECT_GT(seen.at_the_end, 0);
  EXPECT_GT(seen.at_the_start, 0);
  EXPECT_GT(seen.without_effect, 0);
}

// With a disk tier, where that is on another disk, which works.
TEST_F(SnapshotFaults, AFaultOfTheSnapshotsDiskLeavesTheDiskTierAlone) {
  ExpectedRun();
  Seen seen;
  int64_t operations = 0;
  {
    FaultEnv faults(PosixEnv());
    RoutedEnv env(PosixEnv(), faults, Snapshots());
    const Outcome outcome = Run(env, Config(true, 2));
    ASSERT_EQ(outcome.error, "");
    ASSERT_GT(outcome.report.tiers.rows.written, 0);
    operations = faults.operations();
    Clear();
  }
  for (int64_t n = 0; n < operations && !HasFailure(); n += Step(n, 9)) {
    FaultEnv faults(PosixEnv());
    faults.Inject({.at = n, .lasting = n % 4 == 0, .error = n % 2 == 0 ? ENOSPC : EIO});
    RoutedEnv env(PosixEnv(), faults, Snapshots());
    SCOPED_TRACE(fmt::format("operation {} of {}", n, operations));
    const Outcome outcome = Run(env, Config(true, n % 3 == 0 ? 1 : 3));
    if (!faults.failed()) continue;
    SCOPED_TRACE(fmt::format("{}: {}", faults.failure(), outcome.error));
    seen.Add(outcome);
    ExpectToHaveGoneOn(outcome);
    ExpectToGoOn(n % 3 != 0, n % 2 == 0);
    Clear();
  }
  seen.Print("disk tier");
  EXPECT_GT(seen.faults, 20);
  EXPECT_GT(seen.failed_snapshots, 0);
  EXPECT_GT(seen.at_the_end, 0);
}

TEST_F(SnapshotFaults, AFullDiskFailsTheLastSnapshotsAndLeavesTheOthers) {
  ExpectedRun();
  bool some_left = false;
  for (const int64_t space : {100'000, 400'000, 700'000, 1'000'000, 1'300'000}) {
    SCOPED_TRACE(fmt::format("{} bytes", space));
    FaultEnv env(PosixEnv());
    env.SetSpace(space);
    const Outcome outcome = Run(env, Config(false, 10));
    if (env.failed()) {
      EXPECT_TRUE(outcome.failed);
      EXPECT_THAT(outcome.error, HasSubstr(std::strerror(ENOSPC)));
      ExpectToHaveGoneOn(outcome);
      some_left = some_left || !Found().empty();
    }
    ExpectToGoOn(false, false);
    Clear();
  }
  EXPECT_TRUE(some_left);
}

// Loses power at the n-th change of a name, file or directory.
class PowerCutEnv : public FaultEnv {
 public:
  PowerCutEnv(std::string snapshots, int64_t at, uint64_t seed)
      : FaultEnv(PosixEnv()), snapshots_(std::move(snapshots)), seed_(seed), left_(at) {}

  std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) override {
    Count();
    return FaultEnv::OpenForWrite(path);
  }
  void Rename(const std::string& from, const std::string& to) override {
    Count();
    FaultEnv::Rename(from, to);
  }
  void Remove(const std::string& path) override {
    Count();
    FaultEnv::Remove(path);
  }
  void Link(const std::string& from, const std::string& to) override {
    Count();
    FaultEnv::Link(from, to);
  }
  // What is there when the directory of snapshots was synced must not get lost.
  void SyncDirectory(const std::string& path) override {
    Count();
    int64_t newest = -1;
    if (path == snapshots_)
      for (const SnapshotEntry& entry : ListSnapshots(PosixEnv(), path)) newest = entry.batch;
    FaultEnv::SyncDirectory(path);
    if (path == snapshots_) durable_ = newest;
  }
  bool cut() const { return left_ < 0; }
  int64_t durable() const { return durable_; }  // the newest batch that is

 private:
  void Count() {
    if (left_-- == 0) Crash(seed_);
  }

  const std::string snapshots_;
  const uint64_t seed_;
  std::atomic<int64_t> left_;
  std::atomic<int64_t> durable_{-1};
};

TEST_F(SnapshotFaults, APowerCutLeavesTheLastSnapshot) {
  ExpectedRun();
  int64_t cuts = 0, with_snapshots = 0;
  for (const bool tiered : {false, true}) {
    for (uint64_t i = 0; i < 40 && !HasFailure(); ++i) {
      const auto at = static_cast<int64_t>(RandomBits(3, i, tiered ? 1 : 0) % 120);
      PowerCutEnv env(Snapshots(), at, i % 6);
      SCOPED_TRACE(fmt::format("tiered {}, operation {}, seed {}", tiered, at, i % 6));
      const Outcome outcome = Run(env, Config(tiered, 1 + static_cast<int64_t>(i % 3)));
      if (env.cut()) {
        // What was left to do may have been nothing but to remove files.
        if (outcome.failed) {
          EXPECT_EQ(outcome.code, ErrorCode::kIo) << outcome.error;
        }
        ++cuts;
        const std::vector<SnapshotEntry> found = Found();
        with_snapshots += found.empty() ? 0 : 1;
        EXPECT_GE(found.empty() ? -1 : found.back().batch, env.durable());
      }
      ExpectToGoOn(i % 2 == 0, false);
      Clear();
    }
  }
  EXPECT_GT(cuts, 40);
  EXPECT_GT(with_snapshots, 15);
}

}  // namespace
}  // namespace terrace
