// The life of rows in whole runs: what the rules promise, in memory and through the tiers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_dir.h"
#include "train/report.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

// Few rows in memory, and a store that merges often.
RunReport TrainTiered(std::vector<std::string> sets) {
  TestDir dir;
  sets.push_back("tiers.disk.path=" + dir.path() + "/rows");
  sets.push_back("tiers.disk.memory=6MB");
  const std::atomic<bool> stop{false};
  RunOptions options;
  options.show_progress = false;
  options.memory_rows = 3000;
  options.open_store = [](const std::string& path, DiskOptions store) {
    store.index_bytes = 20'000;
    return DiskStore::Open(path, store);
  };
  return TrainModel(PosixEnv(), SmallRun(sets), options, stop);
}

const std::vector<std::string> kManyKeys = {"data.synthetic.features=100000",
                                            "data.synthetic.train_examples=30000",
                                            "data.synthetic.zipf=0.8"};

std::vector<std::string> With(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Life, RareKeysGetNoRow) {
  const RunReport all = Train(SmallRun(kManyKeys));
  const RunReport some = Train(SmallRun(
      With(kManyKeys, {"tables.main.admission.by=count", "tables.main.admission.count=3"})));
  EXPECT_EQ(all.life.refused, 0);
  EXPECT_LT(some.rows, all.rows / 3);
  EXPECT_EQ(some.life.admitted + some.life.refused, all.row_lookups);
  EXPECT_EQ(some.life.admitted, some.row_lookups);
  EXPECT_GT(some.life.admission_bytes, 0);
  EXPECT_THAT(ReportTable(SmallRun({}), some), HasSubstr("refused"));
}

TEST(Life, RowsThatAreNotUsedGoAndMemoryIsUsedAgain) {
  const RunReport all = Train(SmallRun(kManyKeys));
  const std::vector<std::string> sets = With(kManyKeys, {"tables.main.life.unseen=10"});
  const RunReport some = Train(SmallRun(sets));
  EXPECT_LT(some.rows, all.rows / 3);
  EXPECT_GT(some.rows_created, all.rows_created);  // some came back
  EXPECT_GT(some.life.expired, some.rows_created / 2);
  // Of what was ever created, little more than the live rows has a place.
  EXPECT_LT(some.rows_in_memory, 2 * some.rows);
  EXPECT_LT(some.arena_bytes, all.arena_bytes);

  const RunReport tiered = TrainTiered(sets);
  EXPECT_EQ(tiered.model_digest, some.model_digest);
  EXPECT_EQ(tiered.rows, some.rows);
  EXPECT_GT(tiered.tiers.disk.expired, 0);
}

TEST(Life, ACapKeepsTheNumberOfRows) {
  const std::vector<std::string> sets = With(kManyKeys, {"tables.main.life.max_rows=5000"});
  const RunReport some = Train(SmallRun(sets));
  EXPECT_LE(some.rows, 5000);
  EXPECT_GT(some.rows, 4500);
  EXPECT_EQ(TrainTiered(sets).model_digest, some.model_digest);
}

TEST(Life, StatisticsAloneChangeNoWeight) {
  TestDir dir;
  const std::string plain = dir.path() + "/plain", counted = dir.path() + "/counted";
  const RunReport a = Train(SmallRun({}), plain);
  const RunReport b = Train(SmallRun({"tables.main.life.statistics=true"}), counted);
  EXPECT_NE(a.model_digest, b.model_digest);  // they are part of the row
  EXPECT_EQ(ReadWholeFile(PosixEnv(), plain), ReadWholeFile(PosixEnv(), counted));
  EXPECT_EQ(b.life.expired, 0);
}

TEST(Life, CombinationsThatMakeNoSenseAreRefused) {
  EXPECT_THAT(UsageError({"tables.main.admission.by=count", "tables.main.admission.count=2",
                          "tables.main.admission.forget=10"}),
              HasSubstr("set tables.main.life.unseen to 10 or less"));
  EXPECT_THAT(UsageError({"tables.main.admission.by=count", "tables.main.admission.count=2",
                          "tables.main.admission.forget=10", "tables.main.life.unseen=11"}),
              HasSubstr("set tables.main.life.unseen to 10 or less"));
  EXPECT_EQ(UsageError({"tables.main.admission.by=count", "tables.main.admission.count=2",
                        "tables.main.admission.forget=10", "tables.main.life.unseen=10"}),
            "no error");
  EXPECT_THAT(UsageError({"train.clock=time"}), HasSubstr("data.timestamp"));
  EXPECT_THAT(UsageError({"tables.main.life.min_score=1", "tables.main.life.max_rows=9"}),
              HasSubstr("[tables.main.life]: max_rows"));
  EXPECT_THAT(UsageError({"tables.main.admission.by=count"}), HasSubstr("tables.main.admission"));
}

}  // namespace
}  // namespace terrace
