#include "tier/disk_store.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/test_dir.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

DiskOptions SmallOptions() {
  DiskOptions options;
  options.row_bytes = 24;
  options.partitions = 4;
  options.memory_bytes = 8 << 20;
  options.background = false;
  return options;
}

std::vector<uint64_t> Keys(uint64_t first, uint64_t end) {
  std::vector<uint64_t> keys;
  for (uint64_t key = first; key < end; ++key) keys.push_back(key);
  return keys;
}

TEST(DiskStore, FindsWhatWasPut) {
  TestDir dir;
  auto store = DiskStore::Open(dir.path(), SmallOptions());
  Contents contents;
  EXPECT_EQ(GetDifference(*store, Keys(0, 100), contents), "");
  PutVersion(*store, Keys(0, 10000), 1, &contents);
  EXPECT_EQ(GetDifference(*store, Keys(0, 20000), contents), "");
  PutVersion(*store, Keys(5000, 6000), 2, &contents);
  EXPECT_EQ(GetDifference(*store, Keys(0, 20000), contents), "");
  store->Merge();
  EXPECT_EQ(store->stats().total.log_keys, 0);
  EXPECT_EQ(store->stats().total.base_rows, 10000);
  EXPECT_EQ(GetDifference(*store, Keys(0, 20000), contents), "");
}

TEST(DiskStore, KeepsExactlyTheLastCommit) {
  TestDir dir;
  Contents committed;
  {
    auto store = DiskStore::Open(dir.path(), SmallOptions());
    PutVersion(*store, Keys(0, 20000), 1, &committed);
    store->Commit();
    PutVersion(*store, Keys(0, 30000), 2);
    store->Merge();
  }
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir.path(), SmallOptions()), committed), "");
}

TEST(DiskStore, SnapshotStaysAsItWas) {
  TestDir dir;
  Contents then;
  auto store = DiskStore::Open(dir.path() + "/store", SmallOptions());
  PutVersion(*store, Keys(0, 20000), 1, &then);
  store->Merge();
  PutVersion(*store, Keys(0, 3000), 2, &then);
  store->Snapshot(dir.path() + "/copy");
  PutVersion(*store, Keys(0, 20000), 3);
  store->Delete(Keys(0, 100));
  store->Merge();
  store->Commit();
  const auto snapshot = DiskStore::OpenReadOnly(dir.path() + "/copy", SmallOptions());
  EXPECT_EQ(StoreDifference(*snapshot, then), "");
  EXPECT_THROW(PutVersion(*snapshot, Keys(1, 2), 1), Error);
  EXPECT_THROW(snapshot->Commit(), Error);
}

TEST(DiskStore, SnapshotsNeedADirectoryOfTheirOwn) {
  TestDir dir;
  auto store = DiskStore::Open(dir.path() + "/store", SmallOptions());
  store->Snapshot(dir.path() + "/copy");
  EXPECT_THROW(store->Snapshot(dir.path() + "/copy"), Error);
  EXPECT_THROW(store->Snapshot(dir.path() + "/store"), Error);
}

// Mixes so near to each other that a batch is not sorted by page.
TEST(DiskStore, FindsNeighboursOfOneMixInAnyOrder) {
  TestDir dir;
  auto store = DiskStore::Open(dir.path(), SmallOptions());
  Contents contents;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 5000; ++i) keys.push_back(KeyOfMix(3 * (i * 1999 % 5000)));
  PutVersion(*store, keys, 1, &contents);
  store->Merge();
  std::vector<uint64_t> wanted = keys;
  for (uint64_t i = 0; i < 5000; ++i) wanted.push_back(KeyOfMix(i * 1777 % 15000));
  EXPECT_EQ(GetDifference(*store, wanted, contents), "");
}

// Calls `hook` before each sync of a directory.
class HookedEnv : public FaultEnv {
 public:
  HookedEnv() : FaultEnv(PosixEnv()) {}
  void SyncDirectory(const std::string& path) override {
    if (hook) std::exchange(hook, nullptr)();
    FaultEnv::SyncDirectory(path);
  }
  std::function<void()> hook;
};

// A commit fails after its manifest took the place of the old one, while a merge replaces files
// that the new manifest names: either manifest may be the one that stays.
TEST(DiskStore, FilesOfACommitInDoubtStay) {
  for (const bool fails : {false, true}) {
    TestDir dir;
    HookedEnv env;
    DiskOptions options = SmallOptions();
    options.env = &env;
    Contents before, after;
    auto store = DiskStore::Open(dir.path(), options);
    PutVersion(*store, Keys(0, 1000), 1, &before);
    store->Merge();
    store->Commit();
    after = before;
    PutVersion(*store, Keys(500, 1500), 2, &after);
    env.hook = [&] { store->Merge(); };
    if (fails) {
      env.Inject({.at = 1, .kinds = FaultEnv::kSyncDirectory});
      EXPECT_THROW(store->Commit(), Error);
      EXPECT_THROW(store->Commit(), Error);
      EXPECT_THROW(PutVersion(*store, Keys(0, 1), 3), Error);
      EXPECT_EQ(StoreDifference(*store, after), "");
    } else {
      store->Commit();
    }
    store.reset();
    store = DiskStore::Open(dir.path(), SmallOptions());
    EXPECT_EQ(StoreDifference(*store, after), "");
  }
}

}  // namespace
}  // namespace terrace
