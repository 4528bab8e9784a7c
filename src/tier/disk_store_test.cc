#include "tier/disk_store.h"

#include <gtest/gtest.h>

#include <cstring>
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

TEST(DiskStore, PutsOfManyPagesAreNewerThanTheBufferAndOlderThanWhatComesThen) {
  TestDir dir;
  auto store = DiskStore::Open(dir.path(), SmallOptions());
  Contents contents;
  PutVersion(*store, Keys(0, 50), 1, &contents);  // few: they stay in the buffer
  EXPECT_EQ(store->stats().total.log_pages, 0);
  std::vector<uint64_t> many = Keys(20, 40'000);
  many.push_back(30);  // twice
  PutVersion(*store, many, 2, &contents);
  EXPECT_GT(store->stats().total.log_pages, 40'000 / 200);
  EXPECT_EQ(store->stats().total.log_keys, 40'000);
  EXPECT_EQ(StoreDifference(*store, contents), "");
  PutVersion(*store, Keys(10, 60), 4, &contents);
  DeleteKeys(*store, Keys(35, 45), &contents);
  EXPECT_EQ(StoreDifference(*store, contents), "");
  store->Merge();
  EXPECT_EQ(StoreDifference(*store, contents), "");
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

// A row's version is at its start.
RowTest OlderThan(uint64_t version) {
  return [version](const std::byte* row) {
    uint64_t of_row;
    std::memcpy(&of_row, row, sizeof(of_row));
    return of_row < version;
  };
}

TEST(DiskStore, MergesDropRowsThatAreDue) {
  TestDir dir;
  DiskOptions options = SmallOptions();
  uint64_t oldest = 0;
  options.due = [&oldest] { return OlderThan(oldest); };
  auto store = DiskStore::Open(dir.path(), options);
  Contents contents;
  PutVersion(*store, Keys(0, 5000), 1, &contents);
  store->Merge();
  PutVersion(*store, Keys(4000, 8000), 2, &contents);
  EXPECT_EQ(StoreDifference(*store, contents), "");
  oldest = 2;
  PutVersion(*store, Keys(7000, 9000), 3, &contents);
  EXPECT_EQ(StoreDifference(*store, contents), "");  // they are there until a merge comes by
  store->Merge();
  std::erase_if(contents, [](const auto& row) { return row.second < 2; });
  EXPECT_EQ(StoreDifference(*store, contents), "");
  EXPECT_EQ(store->stats().expired, 4000);
  EXPECT_EQ(store->stats().total.base_rows, 5000);
}

TEST(DiskStore, ARowThatIsDueDoesNotUncoverAnOlderOne) {
  TestDir dir;
  DiskOptions options = SmallOptions();
  options.partitions = 1;
  bool on = false;
  // The newest value alone is due.
  options.due = [&on]() -> RowTest {
    if (!on) return {};
    return [](const std::byte* row) { return !OlderThan(100)(row); };
  };
  auto store = DiskStore::Open(dir.path(), options);
  PutVersion(*store, Keys(0, 20000), 1);
  store->Merge();
  // Logs of garbage are rewritten alone.
  for (uint64_t version = 100; version < 160; ++version) {
    PutVersion(*store, Keys(0, 2000), version);
    store->Commit();
    on = true;
    store->Settle();
  }
  store->Merge();
  Contents contents;
  NoteVersion(Keys(2000, 20000), 1, &contents);
  EXPECT_EQ(StoreDifference(*store, contents), "");
  EXPECT_GT(store->stats().log_rewrites, 0);
}

}  // namespace
}  // namespace terrace
