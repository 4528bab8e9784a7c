#include "checkpoint/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/test_dir.h"
#include "checkpoint/dense_part.h"
#include "checkpoint/snapshot_testing.h"

namespace terrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SnapshotTest : public ::testing::Test {
 protected:
  std::string Path(int64_t batch) const {
    char name[32];
    std::snprintf(name, sizeof(name), "/%012jd", static_cast<intmax_t>(batch));
    return dir_ + name;
  }
  template <typename F>
  std::string Failure(ErrorCode code, const F& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    return "";
  }
  void Damage(const std::string& path, const std::string& with) {
    std::filesystem::remove(path);  // not through a hard link
    WriteFileAtomically(env_, path, with);
  }
  std::vector<int64_t> Batches() {
    std::vector<int64_t> batches;
    for (const SnapshotEntry& entry : ListSnapshots(env_, dir_)) batches.push_back(entry.batch);
    return batches;
  }

  TestDir test_dir_;
  Env& env_ = PosixEnv();
  const std::string dir_ = test_dir_.path() + "/snapshots";
  const std::unique_ptr<FileLock> lock_ = LockSnapshots(env_, dir_);
  SnapshotWork work_{env_, test_dir_.path() + "/store"};
};

TEST_F(SnapshotTest, ReadsBackWhatWasWritten) {
  work_.Write(dir_, 7);
  const Contents rows = work_.rows();
  work_.Write(dir_, 15);
  EXPECT_EQ(SnapshotWork::Difference(env_, Path(7), 7, rows), "");
  EXPECT_EQ(SnapshotWork::Difference(env_, Path(15) + "/", 15, work_.rows()), "");
  EXPECT_EQ(SnapshotWork::Difference(env_, dir_, 15, work_.rows()), "");
  const auto snapshot = Snapshot::Open(env_, dir_);
  EXPECT_EQ(snapshot->path(), Path(15));
  EXPECT_EQ(snapshot->info().created.size(), 20u);
  EXPECT_THAT(env_.List(snapshot->path()),
              ElementsAre("MANIFEST", "config.toml", "dense", "tables"));
}

TEST_F(SnapshotTest, IsInvisibleUntilItIsCommitted) {
  work_.Write(dir_, 1);
  {
    SnapshotWriter writer(env_, dir_, 2);
    work_.Fill(&writer, 2);
    EXPECT_THAT(Batches(), ElementsAre(1));
    EXPECT_EQ(Snapshot::Open(env_, dir_)->info().batch, 1);
  }
  EXPECT_THAT(env_.List(dir_), ElementsAre("000000000001", "LOCK"));
}

TEST_F(SnapshotTest, ASecondOneOfTheSameBatchIsRefused) {
  work_.Write(dir_, 3);
  EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { work_.Write(dir_, 3); }),
              HasSubstr("a snapshot of this batch already"));
  EXPECT_EQ(SnapshotWork::Difference(env_, Path(3), 3, work_.rows()), "");
}

TEST_F(SnapshotTest, ACopyOnAMediumThatCannotBeWrittenOpens) {
  work_.Write(dir_, 4);
  const std::string copy = test_dir_.path() + "/copy";
  std::filesystem::copy(Path(4), copy, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy))
    chmod(entry.path().c_str(), entry.is_directory() ? 0555 : 0444);
  chmod(copy.c_str(), 0555);
  EXPECT_EQ(SnapshotWork::Difference(env_, copy, 4, work_.rows()), "");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy))
    if (entry.is_directory()) chmod(entry.path().c_str(), 0755);
  chmod(copy.c_str(), 0755);
}

TEST_F(SnapshotTest, DamageIsNamedWithWhatToDo) {
  work_.Write(dir_, 5);
  const auto snapshot = Snapshot::Open(env_, dir_);
  const auto read = [&] { return snapshot->ReadFile("dense"); };
  const std::string dense = read();
  const auto named = [&](const char* what) {
    return AllOf(HasSubstr(Path(5) + "/dense: "), HasSubstr(what),
                 HasSubstr("use another snapshot (terrace snapshot list)"));
  };
  Damage(Path(5) + "/dense", dense + "x");
  EXPECT_THAT(Failure(ErrorCode::kCorruption, read), named("was written with 33"));
  Damage(Path(5) + "/dense", "x" + dense.substr(1));
  EXPECT_THAT(Failure(ErrorCode::kCorruption, read), named("its hash is "));
  std::filesystem::remove(Path(5) + "/dense");
  EXPECT_THAT(Failure(ErrorCode::kCorruption, read), named("is missing"));
  EXPECT_THAT(Failure(ErrorCode::kCorruption, [&] { snapshot->ReadFile("other"); }),
              HasSubstr("names no file \"other\""));

  EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { snapshot->TablePath("other"); }),
              HasSubstr("its tables: main"));
  const std::string manifest = snapshot->TablePath("main") + "/MANIFEST";
  work_.Train(6);
  work_.store().Snapshot(test_dir_.path() + "/later");
  Damage(manifest, ReadWholeFile(env_, test_dir_.path() + "/later/MANIFEST"));
  EXPECT_THAT(Failure(ErrorCode::kCorruption, [&] { snapshot->TablePath("main"); }),
              HasSubstr("is not the one that the snapshot was written with"));
  std::filesystem::remove(manifest);
  EXPECT_THAT(Failure(ErrorCode::kCorruption, [&] { snapshot->TablePath("main"); }),
              HasSubstr("is missing"));

  Damage(Path(5) + "/MANIFEST", "terrace snapshot 1\nbatch");
  EXPECT_THAT(Failure(ErrorCode::kCorruption, [&] { Snapshot::Open(env_, dir_); }),
              HasSubstr(Path(5) + "/MANIFEST: "));
}

TEST_F(SnapshotTest, WhatIsNoSnapshotIsSaid) {
  EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { Snapshot::Open(env_, dir_ + "/absent"); }),
              HasSubstr("no such snapshot"));
  EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { Snapshot::Open(env_, dir_); }),
              HasSubstr("neither a snapshot"));
  work_.Write(dir_, 1);
  const std::string store = Snapshot::Open(env_, dir_)->TablePath("main");
  EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { Snapshot::Open(env_, store); }),
              HasSubstr("a disk store, not of a snapshot"));
  EXPECT_EQ(KindOfStored(env_, store), StoredKind::kStore);
  EXPECT_EQ(KindOfStored(env_, dir_ + "/"), StoredKind::kSnapshots);
  EXPECT_EQ(KindOfStored(env_, Path(1)), StoredKind::kSnapshot);
  EXPECT_EQ(KindOfStored(env_, store + "/MANIFEST"), StoredKind::kNothing);
  EXPECT_EQ(KindOfStored(env_, dir_ + "/absent"), StoredKind::kNothing);
  EXPECT_EQ(KindOfStored(env_, test_dir_.path()), StoredKind::kNothing);
}

TEST_F(SnapshotTest, RetentionKeepsTheLastAndTheRound) {
  for (const int64_t batch : {10, 20, 25, 30, 35, 40}) work_.Write(dir_, batch);
  EXPECT_THAT(ApplyRetention(env_, dir_, 2, 20), ElementsAre(10, 25, 30));
  EXPECT_THAT(Batches(), ElementsAre(20, 35, 40));
  EXPECT_THAT(ApplyRetention(env_, dir_, 2, 20), IsEmpty());
  EXPECT_THAT(ApplyRetention(env_, dir_, 1, 0), ElementsAre(20, 35));
  EXPECT_THAT(ApplyRetention(env_, dir_, 1, 0), IsEmpty());
  EXPECT_THAT(env_.List(dir_), ElementsAre("000000000040", "LOCK"));
  EXPECT_EQ(SnapshotWork::Difference(env_, dir_, 40, work_.rows()), "");
}

TEST_F(SnapshotTest, RetentionLeavesWhatIsOpen) {
  work_.Write(dir_, 1);
  const Contents rows = work_.rows();
  work_.Write(dir_, 2);
  work_.Write(dir_, 3);
  auto open = Snapshot::Open(env_, Path(1));
  EXPECT_THAT(ApplyRetention(env_, dir_, 1, 0), ElementsAre(2));
  EXPECT_EQ(SnapshotWork::Difference(env_, Path(1), 1, rows), "");
  open.reset();
  EXPECT_THAT(ApplyRetention(env_, dir_, 1, 0), ElementsAre(1));
}

// Removes what is about to be locked, before or right after that; once.
class RacingEnv : public FaultEnv {
 public:
  explicit RacingEnv(bool before) : FaultEnv(PosixEnv()), before_(before) {}
  std::unique_ptr<FileLock> TryLockDirectory(const std::string& path, LockMode mode) override {
    const bool first = !std::exchange(done_, true);
    if (first && before_) RemoveTree(PosixEnv(), path);
    std::unique_ptr<FileLock> lock = FaultEnv::TryLockDirectory(path, mode);
    if (first && !before_) RemoveTree(PosixEnv(), path);
    return lock;
  }

 private:
  const bool before_;
  bool done_ = false;
};

TEST_F(SnapshotTest, OneThatGoesWhileItIsOpenedIsPassedOver) {
  for (const bool before : {false, true}) {
    work_.Write(dir_, before ? 1 : 3);
    work_.Write(dir_, before ? 2 : 4);
    RacingEnv racing(before);
    EXPECT_EQ(Snapshot::Open(racing, dir_)->info().batch, before ? 1 : 3);
    RacingEnv again(before);
    EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { Snapshot::Open(again, Path(before ? 1 : 3)); }),
                HasSubstr("no such snapshot"));
    EXPECT_THAT(Batches(), IsEmpty());
  }
}

TEST_F(SnapshotTest, TheDensePartIsItsBlocksAndTheOptimizers) {
  for (const int64_t width : {2, 3, 4}) {
    SnapshotWriter writer(env_, dir_, width);
    AddDense(&writer, std::vector<float>{1, 2, 3}, std::vector<float>{4, 5});
    SnapshotInfo info;
    info.dense = {{"one", {}}, {"two", {width, 1}}};
    writer.Commit(info);
  }
  EXPECT_THAT(ReadDense(*Snapshot::Open(env_, Path(2))).params, ElementsAre(1, 2, 3));
  EXPECT_THAT(ReadDense(*Snapshot::Open(env_, Path(2))).state, ElementsAre(4, 5));
  EXPECT_THAT(ReadDense(*Snapshot::Open(env_, Path(4))).state, IsEmpty());
  SnapshotWriter writer(env_, dir_, 5);
  AddDense(&writer, std::vector<float>{1}, {});
  SnapshotInfo info;
  info.dense = {{"a", {1 << 24, 1 << 24}}, {"b", {1 << 24, 1 << 24}}};
  writer.Commit(info);
  EXPECT_THAT(Failure(ErrorCode::kCorruption, [&] { ReadDense(*Snapshot::Open(env_, dir_)); }),
              HasSubstr("has 4 bytes, but the blocks"));
}

TEST_F(SnapshotTest, LeftoversGoAndTheRestStays) {
  work_.Write(dir_, 1);
  env_.MakeDirectory(dir_ + "/.writing-000000000002/tables/main");
  env_.MakeDirectory(dir_ + "/.removing-000000000000");
  env_.MakeDirectory(dir_ + "/live");
  env_.MakeDirectory(dir_ + "/000000000009");  // no manifest: not a snapshot
  WriteFileAtomically(env_, dir_ + "/.writing-000000000002/dense", "half");
  EXPECT_THAT(Batches(), ElementsAre(1));
  RemoveSnapshotLeftovers(env_, dir_);
  EXPECT_THAT(env_.List(dir_), ElementsAre("000000000001", "000000000009", "LOCK", "live"));
}

TEST_F(SnapshotTest, OneProcessWrites) {
  EXPECT_THAT(Failure(ErrorCode::kIo, [&] { LockSnapshots(env_, dir_); }),
              HasSubstr("another process has it open"));
}

TEST_F(SnapshotTest, AChangeOfRowsBecomesPartOfTheSnapshot) {
  work_.Write(dir_, 1);
  Contents rows = work_.rows();
  work_.Write(dir_, 2);
  const Contents second = work_.rows();
  DiskOptions options;
  options.memory_bytes = 8 << 20;
  options.background = false;
  const std::vector<uint64_t> keys = {3, 4};
  work_.Train(3);  // the run goes on with the logs that the snapshots have
  {
    const auto reader = Snapshot::Open(env_, Path(1));
    EXPECT_THAT(Failure(ErrorCode::kUsage, [&] { SnapshotEditor(env_, Path(1)); }),
                HasSubstr("another process has the snapshot open"));
  }
  {
    SnapshotEditor editor(env_, Path(1));
    {
      const auto store = DiskStore::Open(editor.BeginTable("main"), options);
      EXPECT_THAT(Failure(ErrorCode::kIo, [&] { Snapshot::Open(env_, Path(1)); }),
                  HasSubstr("is being removed or changed"));
      DeleteKeys(*store, keys, &rows);
      store->Merge();
      store->Commit();
    }
    editor.AddLineage("2 rows deleted");
    editor.EndTable("main", 18, 18);
  }
  EXPECT_EQ(SnapshotWork::Difference(env_, Path(1), 1, rows), "");
  EXPECT_EQ(SnapshotWork::Difference(env_, Path(2), 2, second), "");
  EXPECT_EQ(StoreDifference(work_.store(), work_.rows()), "") << "the run shares files";
  const auto snapshot = Snapshot::Open(env_, Path(1));
  EXPECT_THAT(snapshot->info().lineage, ElementsAre("2 rows deleted"));
  EXPECT_EQ(snapshot->info().tables[0].rows_max, 18);
}

// The store is whole by itself: what is missing is only the line that says which one it is.
TEST_F(SnapshotTest, AChangeThatWasCutOffLeavesASnapshotThatOpens) {
  work_.Write(dir_, 1);
  { SnapshotEditor(env_, Path(1)).BeginTable("main"); }
  EXPECT_FALSE(Snapshot::Open(env_, dir_)->info().tables[0].settled);
  EXPECT_EQ(SnapshotWork::Difference(env_, dir_, 1, work_.rows()), "");
  SnapshotEditor editor(env_, Path(1));
  editor.BeginTable("main");
  editor.EndTable("main", 20, 20);
  EXPECT_TRUE(editor.info().tables[0].settled);
}

}  // namespace
}  // namespace terrace
