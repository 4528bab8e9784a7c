#include "cli/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/test_dir.h"
#include "cli/store_paths.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

DiskOptions Options() {
  DiskOptions options;
  options.row_bytes = 56;
  options.partitions = 4;
  options.memory_bytes = 8 << 20;
  options.background = false;
  return options;
}

void Put(DiskStore& store, uint64_t first, uint64_t end) {
  std::vector<uint64_t> keys;
  for (uint64_t key = first; key < end; ++key) keys.push_back(key);
  store.Put(keys, std::vector<std::byte>(keys.size() * 56).data());
}

// Of 10,000 rows in the bases; then, if `logs`, 100 written twice more and one deleted.
void WriteStore(const std::string& dir, bool logs) {
  const auto store = DiskStore::Open(dir, Options());
  Put(*store, 0, 10'000);
  store->Merge();
  store->Commit();
  if (!logs) return;
  for (int i = 0; i < 2; ++i) {
    Put(*store, 0, 100);
    store->Commit();
  }
  store->Delete(std::vector<uint64_t>{500});
  store->Commit();
}

class InspectTest : public ::testing::Test {
 protected:
  const TestDir dir_;
};

TEST_F(InspectTest, AMergedStoreHasKnownRowsAndNoGarbage) {
  WriteStore(dir_.path(), false);
  const StoreReport report = InspectStore(PosixEnv(), "main", dir_.path());
  EXPECT_EQ(report.rows_min, 10'000);
  EXPECT_EQ(report.rows_max, 10'000);
  EXPECT_EQ(report.garbage_bytes, 0);
  EXPECT_EQ(report.log_bytes, 0);
  int64_t base_bytes = 0;
  for (const std::string& path : PosixEnv().Glob(dir_.path() + "/*.base"))
    base_bytes += PosixEnv().FileSize(path);
  EXPECT_EQ(report.base_bytes, base_bytes);
  EXPECT_GT(report.space_amplification, 1.0);
  EXPECT_LT(report.space_amplification, 1.1);
  EXPECT_EQ(report.stats.commits, 1u);
}

TEST_F(InspectTest, LogsMakeRowsARangeAndGarbage) {
  WriteStore(dir_.path(), true);
  const StoreReport report = InspectStore(PosixEnv(), "main", dir_.path());
  EXPECT_EQ(report.rows_min, 9'999);
  EXPECT_EQ(report.rows_max, 10'100);
  EXPECT_EQ(report.garbage_bytes, (200 + 1 + 1) * 64);
  EXPECT_GT(report.log_bytes, 0);
  EXPECT_EQ(report.stats.total.log_keys, 101);
  EXPECT_EQ(report.stats.commits, 4u);
}

TEST_F(InspectTest, TheMemoryToOpenIsJustEnough) {
  WriteStore(dir_.path(), true);
  DiskOptions options;
  options.memory_bytes =
      static_cast<size_t>(InspectStore(PosixEnv(), "main", dir_.path()).memory_to_open);
  DiskStore::OpenReadOnly(dir_.path(), options);
  options.memory_bytes = options.memory_bytes * 9 / 10;
  EXPECT_THROW(DiskStore::OpenReadOnly(dir_.path(), options), Error);
}

TEST_F(InspectTest, TablesAlignAndPartitionsAreShownOnRequest) {
  WriteStore(dir_.path(), true);
  const StoreReport report = InspectStore(PosixEnv(), "main", dir_.path());
  const std::string text = RenderStores({report}, false);
  EXPECT_THAT(text,
              HasSubstr("table            rows  row bytes  page bytes  partitions  commit\n"
                        "----------------------------------------------------------------\n"
                        "main   9,999 - 10,100         56        4096           4       4\n"));
  EXPECT_THAT(text, HasSubstr("1.0 %"));  // log share
  EXPECT_THAT(text, ::testing::Not(HasSubstr("tombstones")));
  EXPECT_THAT(RenderStores({report}, true), HasSubstr("tombstones"));
}

TEST_F(InspectTest, JsonHasTheSameNumbers) {
  WriteStore(dir_.path(), true);
  const StoreReport report = InspectStore(PosixEnv(), "main", dir_.path());
  const auto json = nlohmann::json::parse(StoresJson({report, report}, true))["tables"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["table"], "main");
  EXPECT_EQ(json[1]["rows_max"], 10'100);
  EXPECT_EQ(json[1]["garbage_bytes"], report.garbage_bytes);
  ASSERT_EQ(json[1]["by_partition"].size(), 4u);
  int64_t rows = 0;
  for (const auto& partition : json[1]["by_partition"]) rows += int64_t{partition["base_rows"]};
  EXPECT_EQ(rows, 10'000);
  EXPECT_FALSE(
      nlohmann::json::parse(StoresJson({report}, false))["tables"][0].contains("by_partition"));
}

TEST_F(InspectTest, FindsAStoreOrTheStoresBelow) {
  const auto names = [&](const std::string& dir) {
    std::string all;
    for (const StorePath& store : FindStores(PosixEnv(), dir)) all += store.name + " ";
    return all;
  };
  const std::string stores = dir_.path() + "/stores";
  DiskStore::Open(stores + "/b", Options());
  DiskStore::Open(stores + "/a", Options());
  PosixEnv().MakeDirectory(stores + "/empty");
  WriteFileAtomically(PosixEnv(), stores + "/file", "x");
  EXPECT_EQ(names(stores), "a b ");
  EXPECT_EQ(names(stores + "/b/"), "b ");
  for (const char* none : {"/empty", "/file", "/absent"})
    EXPECT_THROW(names(stores + none), Error) << none;
}

}  // namespace
}  // namespace terrace
