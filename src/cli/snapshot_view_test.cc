// Reading rows of snapshots: inspect, diff and export.
#include "cli/snapshot_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/test_dir.h"
#include "cli/export_rows.h"
#include "cli/inspect_snapshot.h"
#include "cli/snapshot_diff.h"
#include "cli/snapshot_sizes.h"
#include "cli/snapshot_testing.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class SnapshotViewTest : public ::testing::Test {
 protected:
  SnapshotViewTest() {
    WriteTestSnapshots(dir_.path());
    std::filesystem::remove_all(dir_.path() + "/live");
  }
  std::string Path(int64_t batch) const {
    return dir_.path() + "/snapshots/00000000" + std::to_string(batch);
  }

  const TestDir dir_;
  Env& env_ = PosixEnv();
};

TEST_F(SnapshotViewTest, InspectReadsNormsHottestAndDense) {
  const SnapshotView view(env_, Path(1000));
  const SnapshotReport report = InspectSnapshot(view, {.rows = true, .hottest = 2, .progress = {}});
  ASSERT_EQ(report.tables.size(), 2u);
  const TableReport &ads = report.tables[0], &users = report.tables[1];
  EXPECT_EQ(ads.rows, 100);
  EXPECT_EQ(users.rows, 100);
  EXPECT_EQ(users.norms.min(), 1);
  EXPECT_EQ(users.norms.max(), 100);
  EXPECT_NEAR(users.norms.Quantile(0.5), 50, 0.5);
  EXPECT_NEAR(users.norms.Quantile(0.99), 99, 1);
  // By show, which falls with the key; without counts by norm, which rises with it.
  ASSERT_EQ(users.hottest.size(), 2u);
  EXPECT_EQ(users.hottest[0].key, 1u);
  EXPECT_EQ(users.hottest[0].stats.show, 999);
  EXPECT_EQ(users.hottest[0].stats.seen, 7u);
  EXPECT_EQ(ads.hottest[0].key, 100u);
  EXPECT_NEAR(ads.hottest[0].norm, 100, 0.01);
  ASSERT_EQ(report.dense.size(), 2u);
  EXPECT_EQ(report.dense[0].norm, 5);
  EXPECT_NEAR(report.dense[1].norm, std::sqrt(5.0f), 1e-6);
  EXPECT_EQ(report.dense_state, 6);

  const auto json = nlohmann::json::parse(SnapshotJson(report));
  EXPECT_EQ(json["tables"][1]["norm"]["max"], 100);
  EXPECT_EQ(json["tables"][1]["hottest"][0]["key"], 1);
  EXPECT_EQ(json["dense"][0]["shape"][1], 2);
  const SnapshotReport quick = InspectSnapshot(view, {.rows = false, .hottest = 2, .progress = {}});
  EXPECT_FALSE(nlohmann::json::parse(SnapshotJson(quick))["tables"][0].contains("norm"));
  EXPECT_THAT(RenderSnapshot(quick), HasSubstr("deep.0.weight"));
}

TEST_F(SnapshotViewTest, DiffCountsRowsAndMeasuresTheChange) {
  const SnapshotView before(env_, Path(1000)), after(env_, Path(2000));
  DiffOptions options;
  options.keys = 3;
  const SnapshotDiff diff = DiffSnapshots(before, after, options);
  ASSERT_EQ(diff.tables.size(), 2u);
  EXPECT_EQ(diff.tables[0].rows.same, 100);
  EXPECT_EQ(diff.tables[0].rows.changed + diff.tables[0].rows.added + diff.tables[0].rows.removed,
            0);
  const TableDiff& users = diff.tables[1];
  EXPECT_EQ(users.rows.added, 4);
  EXPECT_EQ(users.rows.removed, 2);
  EXPECT_EQ(users.rows.changed, 3);
  EXPECT_EQ(users.rows.same, 95);
  EXPECT_THAT(users.rows.removed_keys, UnorderedElementsAre(1, 2));
  EXPECT_THAT(users.rows.changed_keys, UnorderedElementsAre(3, 4, 5));
  EXPECT_EQ(users.rows.added_keys.size(), 3u);
  EXPECT_TRUE(users.same_layout);
  EXPECT_EQ(users.mean_change, 0.5);
  EXPECT_EQ(users.max_change, 0.5);
  ASSERT_EQ(diff.dense.size(), 2u);
  EXPECT_EQ(diff.dense[0].name, "deep.0.bias");
  EXPECT_EQ(diff.dense[0].difference, 3);
  EXPECT_EQ(diff.dense[1].difference, 0);
}

// Against std::map, over stores cut into different numbers of partitions.
TEST(DiffStores, CountsWhatTheModelSays) {
  for (uint64_t round = 0; round < 20; ++round) {
    TestDir dir;
    RandomStream random(round, 0);
    const auto below = [&](uint64_t n) { return BelowN(random.Next(), n); };
    std::unique_ptr<DiskStore> stores[2];
    Contents contents[2];
    for (int s = 0; s < 2; ++s) {
      DiskOptions options;
      options.row_bytes = 24;
      options.page_bytes = 512;
      options.partitions = 1 << below(5);
      options.memory_bytes = 8 << 20;
      options.background = false;
      stores[s] = DiskStore::Open(dir.path() + "/" + std::to_string(s), options);
      for (uint64_t i = below(3) == 0 ? 0 : 600; i > 0; --i) {
        const uint64_t key = below(1000);
        PutVersion(*stores[s], {&key, 1}, below(3), &contents[s]);
      }
      if (below(2) == 0) stores[s]->Merge();
      stores[s]->Commit();
    }
    int64_t added = 0, changed = 0, same = 0, called = 0;
    for (const auto& [mix, version] : contents[1]) {
      const auto old = contents[0].find(mix);
      (old == contents[0].end() ? added : old->second == version ? same : changed) += 1;
    }
    const RowsDiff diff = DiffStores(stores[0].get(), stores[1].get(), {.keys = 5, .progress = {}},
                                     [&](const std::byte*, const std::byte*) { ++called; });
    EXPECT_EQ(diff.added, added) << round;
    EXPECT_EQ(diff.changed, changed) << round;
    EXPECT_EQ(diff.same, same) << round;
    EXPECT_EQ(diff.removed, static_cast<int64_t>(contents[0].size()) - same - changed) << round;
    EXPECT_EQ(called, changed) << round;
    EXPECT_LE(diff.added_keys.size(), 5u);
  }
}

TEST(DiffStores, AFailureOfEitherScanIsThrown) {
  for (const char* damaged : {"0", "1"}) {
    TestDir dir;
    DiskOptions options;
    options.row_bytes = 24;
    options.page_bytes = 512;
    options.partitions = 1;
    options.memory_bytes = 8 << 20;
    options.background = false;
    for (const char* name : {"0", "1"}) {
      const auto store = DiskStore::Open(dir.path() + "/" + name, options);
      for (uint64_t key = 0; key < 5000; ++key) PutVersion(*store, {&key, 1}, 1);
      store->Merge();
      store->Commit();
    }
    const std::string path = PosixEnv().Glob(dir.path() + "/" + damaged + "/*.base").at(0);
    std::string bytes = ReadWholeFile(PosixEnv(), path);
    bytes[100 * 512 + 100] ^= 1;
    WriteFileAtomically(PosixEnv(), path, bytes);
    const auto before = DiskStore::OpenReadOnly(dir.path() + "/0", options);
    const auto after = DiskStore::OpenReadOnly(dir.path() + "/1", options);
    EXPECT_THROW(DiffStores(before.get(), after.get(), {}, {}), Error);
  }
}

std::map<uint64_t, std::string> ReadTsv(const std::string& path, std::string* header) {
  std::map<uint64_t, std::string> lines;
  std::istringstream text(ReadWholeFile(PosixEnv(), path));
  std::getline(text, *header);
  for (std::string line; std::getline(text, line);) lines[std::stoull(line)] = line;
  return lines;
}

TEST_F(SnapshotViewTest, ExportToTextReadsBack) {
  const SnapshotView view(env_, Path(2000));
  const std::string path = dir_.path() + "/rows.tsv";
  std::string header;
  ExportReport report = ExportRows(view, {"users", path, false, {}});
  EXPECT_EQ(report.rows, 102);
  EXPECT_THAT(report.files, ElementsAre(path));
  auto lines = ReadTsv(path, &header);
  EXPECT_EQ(header, "key\tw0\tw1\tw2\tlinear");
  EXPECT_EQ(lines.size(), 102u);
  EXPECT_EQ(lines[4], "4\t4.5\t0\t0\t0");
  ExportRows(view, {"users", path, true, {}});
  lines = ReadTsv(path, &header);
  EXPECT_EQ(header, "key\tw0\tw1\tw2\tlinear\tstate0\tstate1\tstate2\tstate3\tshow\tclick\tseen");
  EXPECT_EQ(lines[100], "100\t100\t0\t0\t0\t0.5\t0.5\t0.5\t0.5\t900\t225\t7");
}

// Without numpy: the header as it must be, then the numbers.
std::string Body(const std::string& path, const std::string& says) {
  const std::string bytes = ReadWholeFile(PosixEnv(), path);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto length = static_cast<size_t>(static_cast<uint8_t>(bytes[8])) +
                      static_cast<size_t>(static_cast<uint8_t>(bytes[9])) * 256;
  EXPECT_EQ((10 + length) % 64, 0u);
  EXPECT_EQ(bytes[9 + length], '\n');
  EXPECT_THAT(bytes.substr(10, length), HasSubstr(says));
  return bytes.substr(10 + length);
}

TEST_F(SnapshotViewTest, ExportForNumpyHasRowsInOneOrder) {
  const SnapshotView view(env_, Path(1000));
  const std::string stem = dir_.path() + "/rows";
  const ExportReport report = ExportRows(view, {"users", stem + ".npy", true, {}});
  EXPECT_THAT(report.files, ElementsAre(stem + ".npy", stem + ".state.npy", stem + ".stats.npy",
                                        stem + ".keys.npy"));
  const std::string weights =
      Body(stem + ".npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (100, 4), }");
  const std::string keys =
      Body(stem + ".keys.npy", "{'descr': '<u8', 'fortran_order': False, 'shape': (100,), }");
  const std::string stats =
      Body(stem + ".stats.npy",
           "{'descr': [('show', '<f4'), ('click', '<f4'), ('seen', '<u4')], 'fortran_order': "
           "False, 'shape': (100,), }");
  EXPECT_EQ(Body(stem + ".state.npy", "'shape': (100, 4)").size(), 100u * 16);
  ASSERT_EQ(weights.size(), 100u * 16);
  ASSERT_EQ(keys.size(), 100u * 8);
  ASSERT_EQ(stats.size(), 100u * 12);
  for (size_t i = 0; i < 100; ++i) {
    uint64_t key;
    float norm, show;
    std::memcpy(&key, &keys[i * 8], 8);
    std::memcpy(&norm, &weights[i * 16], 4);
    std::memcpy(&show, &stats[i * 12], 4);
    EXPECT_EQ(norm, static_cast<float>(key));
    EXPECT_EQ(show, static_cast<float>(1000 - key));
  }
  // A packed table without state or statistics has neither file.
  EXPECT_THAT(ExportRows(view, {"ads", stem + "_ads.npy", true, {}}).files,
              ElementsAre(stem + "_ads.npy", stem + "_ads.keys.npy"));
}

TEST_F(SnapshotViewTest, WhatCannotBeExportedLeavesNothing) {
  const SnapshotView view(env_, Path(1000));
  EXPECT_THROW(ExportRows(view, {"users", dir_.path() + "/rows.csv", false, {}}), Error);
  EXPECT_THROW(ExportRows(view, {"other", dir_.path() + "/rows.tsv", false, {}}), Error);
  EXPECT_THROW(ExportRows(view, {"users", dir_.path() + "/no/rows.npy", false, {}}), Error);
  EXPECT_THAT(env_.List(dir_.path()), ElementsAre("snapshots"));
}

TEST_F(SnapshotViewTest, AFullDiskLeavesTheFilesThatWereThere) {
  const std::string out = dir_.path() + "/out";
  env_.MakeDirectory(out);
  WriteFileAtomically(env_, out + "/rows.tsv", "old");
  for (const char* name : {"/rows.tsv", "/rows.npy"}) {
    FaultEnv full(env_);
    full.SetSpace(1000);
    const SnapshotView view(full, Path(1000));
    EXPECT_THROW(ExportRows(view, {"users", out + name, true, {}}), Error);
  }
  EXPECT_THAT(env_.List(out), ElementsAre("rows.tsv"));
  EXPECT_EQ(ReadWholeFile(env_, out + "/rows.tsv"), "old");
}

TEST_F(SnapshotViewTest, SizesCountEachFileOnce) {
  SeenFiles seen;
  int64_t both = 0;
  const SnapshotSizes first = MeasureSnapshot(env_, Path(1000), &seen, &both);
  EXPECT_EQ(both, first.own_bytes + first.shared_bytes);
  const SnapshotSizes second = MeasureSnapshot(env_, Path(2000), &seen, &both);
  // The bases of both tables are shared, and the run that had them is gone.
  EXPECT_EQ(first.shared_bytes, second.shared_bytes);
  EXPECT_GT(first.shared_bytes, 0);
  EXPECT_GT(second.own_bytes, first.own_bytes);
  EXPECT_EQ(both, first.own_bytes + second.own_bytes + first.shared_bytes);
}

TEST_F(SnapshotViewTest, AConfigOfOtherRowsIsSaid) {
  const std::string path = dir_.path() + "/snapshots/000000003000";
  const std::string other = "[data]\nformat = \"csv\"\ntrain = \"a\"\nslots = [\"user\"]\n";
  for (const std::string& config : {other, std::string("nonsense = 1\n")}) {
    SnapshotWriter writer(env_, dir_.path() + "/snapshots", 3000);
    writer.AddFile("config.toml", config);
    std::filesystem::copy(Path(1000) + "/tables/users", writer.TablePath("users"));
    writer.AddTable({.name = "users", .row_bytes = 44, .schema = "", .rows_min = 0, .rows_max = 0});
    SnapshotInfo info;
    writer.Commit(info);
    try {
      const SnapshotView view(env_, path);
      EXPECT_THROW(view.Schema("users"), Error);
      EXPECT_EQ(config, other);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorruption);
      EXPECT_THAT(e.what(), HasSubstr("nonsense"));
    }
    RemoveTree(env_, path);
  }
}

}  // namespace
}  // namespace terrace
