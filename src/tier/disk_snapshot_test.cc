// Snapshots of scratch stores, and scratch stores that start from them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

DiskOptions Scratch(const std::string& start_from = "") {
  DiskOptions options;
  options.row_bytes = 24;
  options.partitions = start_from.empty() ? 4 : 0;
  options.memory_bytes = 8 << 20;
  options.durability = Durability::kScratch;
  options.start_from = start_from;
  return options;
}

DiskOptions Reading() {
  DiskOptions options;
  options.memory_bytes = 64 << 20;
  return options;
}

std::vector<uint64_t> Keys(uint64_t first, uint64_t end) {
  std::vector<uint64_t> keys;
  for (uint64_t key = first; key < end; ++key) keys.push_back(key);
  return keys;
}

// Names and bytes of all files.
std::map<std::string, std::string> FilesIn(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const std::string& name : PosixEnv().List(dir))
    files[name] = ReadWholeFile(PosixEnv(), dir + "/" + name);
  return files;
}

class DiskSnapshot : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  void ExpectWhole(const std::string& dir, const Contents& contents) {
    EXPECT_EQ(StoreDifference(*DiskStore::OpenReadOnly(dir, Reading()), contents), "");
    EXPECT_THAT(VerifyStore(PosixEnv(), dir, {}).problems, ::testing::IsEmpty());
  }

  // A snapshot with bases, logs and tombstones.
  void MakeSnapshot(const std::string& name, Contents* contents) {
    auto store = DiskStore::Open(Path("first"), Scratch());
    PutVersion(*store, Keys(0, 20000), 1, contents);
    store->Merge();
    PutVersion(*store, Keys(15000, 22000), 2, contents);
    DeleteKeys(*store, Keys(100, 200), contents);
    store->Snapshot(Path(name));
  }

  static std::string OpenError(const std::string& dir, const DiskOptions& options) {
    try {
      DiskStore::Open(dir, options);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  TestDir dir_;
};

TEST_F(DiskSnapshot, AScratchStoreStartsAsTheSnapshotIs) {
  Contents then;
  MakeSnapshot("snapshot", &then);
  const auto before = FilesIn(Path("snapshot"));

  std::filesystem::create_directory(Path("live"));
  std::ofstream(Path("live/00000001.base")) << "left over";
  auto store = DiskStore::Open(Path("live"), Scratch(Path("snapshot")));
  EXPECT_EQ(store->partitions(), 4);
  EXPECT_EQ(StoreDifference(*store, then), "");
  EXPECT_FALSE(PosixEnv().Exists(Path("live/MANIFEST")));
  EXPECT_TRUE(std::filesystem::equivalent(Path("live/") + before.rbegin()->first,
                                          Path("snapshot/") + before.rbegin()->first) ||
              before.rbegin()->first == "MANIFEST");

  Contents now = then;
  PutVersion(*store, Keys(0, 30000), 5, &now);
  DeleteKeys(*store, Keys(7000, 9000), &now);
  store->Merge();
  PutVersion(*store, Keys(0, 10), 6, &now);
  EXPECT_EQ(StoreDifference(*store, now), "");
  store->Snapshot(Path("second"));
  // What only the snapshot needs is not kept for it.
  EXPECT_EQ(dir_.FileBytes("live"), store->stats().total.file_bytes);
  EXPECT_EQ(store->stats().pinned_bytes, 0);
  store.reset();
  EXPECT_THAT(PosixEnv().List(Path("live")), ::testing::ElementsAre("LOCK"));
  EXPECT_EQ(FilesIn(Path("snapshot")), before);
  ExpectWhole(Path("snapshot"), then);
  ExpectWhole(Path("second"), now);
}

TEST_F(DiskSnapshot, AStoreThatOutlivesItsStartKeepsItsRows) {
  Contents then;
  MakeSnapshot("snapshot", &then);
  const auto store = DiskStore::Open(Path("live"), Scratch(Path("snapshot")));
  std::filesystem::remove_all(Path("snapshot"));
  EXPECT_EQ(StoreDifference(*store, then), "");
  store->Snapshot(Path("second"));
  ExpectWhole(Path("second"), then);
}

TEST_F(DiskSnapshot, LogsOfAStoreWithMoreMemoryAreMergedAtTheStart) {
  for (const bool background : {false, true}) {
    DiskOptions options = Scratch();
    options.partitions = 8;
    options.index_bytes = 4 << 20;
    options.background = background;
    Contents contents;
    const std::string snapshot = Path("snapshot" + std::to_string(background));
    {
      auto store = DiskStore::Open(Path("first"), options);
      PutVersion(*store, Keys(0, 20000), 1, &contents);
      store->Merge();
      PutVersion(*store, Keys(10000, 25000), 2, &contents);
      store->Snapshot(snapshot);
      ASSERT_EQ(store->stats().total.log_keys, 15000);
    }
    options.start_from = snapshot;
    options.index_bytes = 40 << 10;
    auto store = DiskStore::Open(Path("live"), options);
    const DiskStats stats = store->stats();
    EXPECT_LT(stats.index_bytes, stats.index_limit);
    EXPECT_GT(stats.merges, 0);
    EXPECT_EQ(StoreDifference(*store, contents), "");
    store.reset();
    ExpectWhole(snapshot, contents);
  }
}

TEST_F(DiskSnapshot, SnapshotsOfOneStoreShareFilesAndStayApart) {
  std::vector<Contents> then(4);
  {
    auto store = DiskStore::Open(Path("live"), Scratch());
    Contents now;
    PutVersion(*store, Keys(0, 20000), 1, &now);
    store->Merge();
    for (uint64_t i = 0; i < then.size(); ++i) {
      PutVersion(*store, Keys(1000 * i, 1000 * i + 500), 10 + i, &now);
      then[i] = now;
      store->Snapshot(Path("snapshot" + std::to_string(i)));
    }
  }
  for (size_t i = 0; i < then.size(); ++i)
    ExpectWhole(Path("snapshot" + std::to_string(i)), then[i]);
  std::filesystem::remove_all(Path("snapshot0"));
  ExpectWhole(Path("snapshot1"), then[1]);
  int shared = 0;
  for (const auto& [name, bytes] : FilesIn(Path("snapshot1")))
    shared += PosixEnv().Exists(Path("snapshot2/" + name)) && name != "MANIFEST" &&
              std::filesystem::equivalent(Path("snapshot1/" + name), Path("snapshot2/" + name));
  EXPECT_GE(shared, 4);
}

TEST_F(DiskSnapshot, WhatCannotBeTheStartIsRefusedAndLeavesNothing) {
  Contents contents;
  MakeSnapshot("snapshot", &contents);
  DiskOptions options = Scratch(Path("snapshot"));
  options.row_bytes = 32;
  EXPECT_THAT(OpenError(Path("live"), options),
              HasSubstr("snapshot: the store has rows of 24 bytes, 32 were asked for"));
  options = Scratch(Path("snapshot"));
  options.partitions = 8;
  EXPECT_THAT(OpenError(Path("live"), options), HasSubstr("snapshot: the store has 4 partitions"));
  options = Scratch(Path("snapshot"));
  options.memory_bytes = 1 << 20;
  EXPECT_THAT(OpenError(Path("live"), options), HasSubstr("needs at least"));
  EXPECT_THAT(OpenError(Path("live"), Scratch(Path("absent"))),
              HasSubstr("absent: holds no store"));
  options = Scratch(Path("snapshot"));
  options.durability = Durability::kCommit;
  EXPECT_THAT(OpenError(Path("live"), options), HasSubstr("start_from is for scratch stores"));
  EXPECT_THAT(PosixEnv().List(Path("live")), ::testing::ElementsAre("LOCK"));

  for (const char* ending : {".log", ".base"}) {
    std::filesystem::copy(Path("snapshot"), Path("damaged"));
    for (const std::string& name : PosixEnv().List(Path("damaged")))
      if (name.ends_with(ending)) std::filesystem::resize_file(Path("damaged/" + name), 4096);
    EXPECT_THAT(OpenError(Path("live"), Scratch(Path("damaged"))), HasSubstr(ending));
    EXPECT_THAT(PosixEnv().List(Path("live")), ::testing::ElementsAre("LOCK"));
    for (const std::string& name : PosixEnv().List(Path("damaged")))
      if (name.ends_with(ending)) std::filesystem::remove(Path("damaged/" + name));
    EXPECT_THAT(OpenError(Path("live"), Scratch(Path("damaged"))), HasSubstr(ending));
    EXPECT_THAT(PosixEnv().List(Path("live")), ::testing::ElementsAre("LOCK"));
    std::filesystem::remove_all(Path("damaged"));
  }
  ExpectWhole(Path("snapshot"), contents);
}

TEST_F(DiskSnapshot, AnotherFileSystemGetsCopies) {
  const TestDir other(TestDir::kDisk);  // dir_ is in memory, where there is such a file system
  Contents contents;
  auto store = DiskStore::Open(Path("live"), Scratch());
  PutVersion(*store, Keys(0, 20000), 1, &contents);
  store->Merge();
  PutVersion(*store, Keys(0, 300), 2, &contents);
  store->Snapshot(other.path() + "/snapshot");
  store.reset();
  ExpectWhole(other.path() + "/snapshot", contents);
  store = DiskStore::Open(Path("live"), Scratch(other.path() + "/snapshot"));
  EXPECT_EQ(StoreDifference(*store, contents), "");
}

}  // namespace
}  // namespace terrace
