// Snapshots whose files fail: every operation in turn, a full disk, and power cuts at any point.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/test_dir.h"
#include "checkpoint/snapshot_testing.h"

namespace terrace {
namespace {

// Writes three snapshots and keeps one, with the rows that each must hold.
class FaultRun {
 public:
  explicit FaultRun(FaultEnv* env) : env_(*env) {}

  // Throws what fails.
  void Run() {
    const auto lock = LockSnapshots(env_, dir());
    if (work_ == nullptr) work_ = std::make_unique<SnapshotWork>(env_, dir_.path() + "/store");
    for (const int64_t batch : {1, 2, 3}) {
      if (written_.contains(batch) || removed_.contains(batch)) continue;
      RemoveSnapshotLeftovers(env_, dir());
      if (!env_.Exists(Path(batch))) {
        attempted_[batch] = Contents();
        work_->Train(batch);
        attempted_[batch] = work_->rows();
        SnapshotWriter writer(env_, dir(), batch);
        work_->Fill(&writer, batch);
        SnapshotInfo info;
        info.examples = 10 * batch;
        writer.Commit(info);
      }
      written_.insert(batch);
    }
    removing_ = true;
    for (const int64_t batch : ApplyRetention(env_, dir(), 1, 0)) removed_.insert(batch);
    RemoveSnapshotLeftovers(env_, dir());
    env_.SyncDirectory(dir());
    done_ = true;
  }

  void Close() { work_.reset(); }

  // What is wrong with what is left, opened by another process.
  std::string Problem() {
    Env& env = PosixEnv();
    if (!env.Exists(dir())) return written_.empty() ? "" : "all snapshots are lost";
    std::map<int64_t, std::string> found;
    for (const SnapshotEntry& entry : ListSnapshots(env, dir())) {
      if (!attempted_.contains(entry.batch)) return entry.path + ": nobody wrote it";
      const std::string difference =
          SnapshotWork::Difference(env, entry.path, entry.batch, attempted_[entry.batch]);
      if (!difference.empty()) return difference;
      for (const std::string& problem :
           VerifyStore(env, Snapshot::Open(env, entry.path)->TablePath("main"), {}).problems)
        return problem;
      found[entry.batch] = entry.path;
    }
    for (const int64_t batch : written_)
      if (!found.contains(batch) && !removing_) return Path(batch) + ": is lost";
    if (removing_ && !found.contains(3)) return "the newest is lost";
    if (done_ && found.size() != 1) return "retention did not last";
    const auto lock = LockSnapshots(env, dir());
    RemoveSnapshotLeftovers(env, dir());
    const std::vector<std::string> names = env.List(dir());
    if (names.size() != found.size() + 1) return "leftovers stay";
    return "";
  }

 private:
  std::string dir() const { return dir_.path() + "/snapshots"; }
  std::string Path(int64_t batch) const { return dir() + "/00000000000" + std::to_string(batch); }

  Env& env_;
  TestDir dir_;
  std::unique_ptr<SnapshotWork> work_;
  std::map<int64_t, Contents> attempted_;  // rows that the snapshot has if it is there
  std::set<int64_t> written_;              // Commit returned
  std::set<int64_t> removed_;
  bool removing_ = false, done_ = false;
};

// True if the run ended.
bool Try(FaultRun* run, std::string* error) {
  try {
    run->Run();
    return true;
  } catch (const Error& e) {
    *error = e.what();
    return false;
  }
}

TEST(SnapshotFault, AnyFailureLeavesWholeSnapshots) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.Inject({.at = n, .lasting = true});
    FaultRun run(&env);
    std::string error;
    const bool done = Try(&run, &error);
    run.Close();
    ASSERT_EQ(run.Problem(), "") << n << ": " << env.failure() << "; " << error;
    if (done && !env.failed()) break;
  }
}

// The run goes on by itself after one failure, with what is there.
TEST(SnapshotFault, AFailedSnapshotIsWrittenAgain) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.FailAt(n);
    FaultRun run(&env);
    std::string error;
    bool done = false;
    for (int attempt = 0; attempt < 3 && !done; ++attempt) {
      done = Try(&run, &error);
      if (!done && error.find("open the store again") != std::string::npos) break;
    }
    run.Close();
    ASSERT_EQ(run.Problem(), "") << n << ": " << env.failure() << "; " << error;
    if (!env.failed()) break;
  }
}

TEST(SnapshotFault, AFullDiskLeavesWholeSnapshots) {
  for (int64_t space = 0;; space += 500) {
    FaultEnv env(PosixEnv());
    env.SetSpace(space);
    FaultRun run(&env);
    std::string error;
    Try(&run, &error);
    run.Close();
    ASSERT_EQ(run.Problem(), "") << "space " << space << ": " << env.failure() << "; " << error;
    if (!env.failed()) break;
    ASSERT_NE(error.find("No space left on device"), std::string::npos) << error;
  }
}

// Seed 0 loses all that is not durable, seed 1 nothing, the others a part of it.
void CutPowerAtEach(int64_t seed) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.Inject({.at = n, .lasting = true});
    FaultRun run(&env);
    std::string error;
    const bool done = Try(&run, &error);
    env.Crash(static_cast<uint64_t>(seed > 1 ? seed + n : seed));
    run.Close();
    ASSERT_EQ(run.Problem(), "") << n << ": " << env.failure() << "; " << error;
    if (done) break;
  }
}

TEST(SnapshotFault, APowerCutThatLosesAllLeavesWholeSnapshots) { CutPowerAtEach(0); }
TEST(SnapshotFault, APowerCutThatLosesNothingLeavesWholeSnapshots) { CutPowerAtEach(1); }
TEST(SnapshotFault, APowerCutThatLosesAPartLeavesWholeSnapshots) {
  CutPowerAtEach(2);
  CutPowerAtEach(1000);
}

// Rows of a snapshot are changed; at each point it opens, with all of the change or nothing of it.
TEST(SnapshotFault, AChangeOfRowsIsWholeOrNot) {
  for (int64_t n = 0;; ++n) {
    TestDir dir;
    const std::string snapshots = dir.path() + "/snapshots";
    SnapshotWork work(PosixEnv(), dir.path() + "/store");
    PosixEnv().MakeDirectory(snapshots);
    work.Write(snapshots, 1);
    const std::string path = snapshots + "/000000000001";
    Contents after = work.rows();
    const std::vector<uint64_t> keys = {3, 4, 5};
    for (const uint64_t key : keys) after.erase(MixOfKey(key));

    FaultEnv env(PosixEnv());
    env.Inject({.at = n, .lasting = true});
    const auto change = [&](Env& with) {
      SnapshotEditor editor(with, path);
      {
        DiskOptions options;
        options.memory_bytes = 8 << 20;
        options.background = false;
        options.env = &with;
        const auto store = DiskStore::Open(editor.BeginTable("main"), options);
        store->Delete(keys);
        store->Merge();
        store->Commit();
      }
      editor.EndTable("main", 17, 17);
    };
    bool done = true;
    try {
      change(env);
    } catch (const Error&) {
      done = false;
    }
    env.Crash(n % 3 == 0 ? 0 : static_cast<uint64_t>(n));
    const std::string before = SnapshotWork::Difference(PosixEnv(), path, 1, work.rows());
    const std::string changed = SnapshotWork::Difference(PosixEnv(), path, 1, after);
    ASSERT_TRUE(before.empty() || changed.empty()) << n << ": " << env.failure() << changed;
    change(PosixEnv());  // repeated, it ends
    ASSERT_EQ(SnapshotWork::Difference(PosixEnv(), path, 1, after), "") << n;
    ASSERT_TRUE(Snapshot::Open(PosixEnv(), path)->info().tables[0].settled);
    if (done) {
      ASSERT_EQ(changed, "");
      break;
    }
  }
}

}  // namespace
}  // namespace terrace
