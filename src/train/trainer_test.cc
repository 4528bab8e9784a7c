#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/report.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

TEST(Trainer, LossFallsAndAucRises) {
  const RunReport report =
      Train(SmallRun({"train.epochs=4", "data.synthetic.train_examples=20000"}));
  EXPECT_EQ(report.examples, 80000);
  EXPECT_EQ(report.epochs, 4);
  ASSERT_EQ(report.evaluations.size(), 4u);
  EXPECT_GT(report.evaluations.back().metrics.auc, 0.6);
  EXPECT_GT(report.evaluations.back().metrics.auc, report.evaluations.front().metrics.auc);
  EXPECT_NEAR(report.evaluations.back().metrics.copc, 1, 0.3);
}

TEST(Trainer, CountsRowsAndLookups) {
  const RunReport report = Train(SmallRun({}));
  EXPECT_GT(report.rows, 300);
  EXPECT_LE(report.rows, 1500);
  EXPECT_EQ(report.rows, report.rows_created);
  EXPECT_GT(report.row_lookups, report.rows);
}

TEST(Trainer, WritesOneScoreATestExample) {
  const std::string path = ::testing::TempDir() + "/scores.txt";
  std::filesystem::remove(path);
  Train(SmallRun({"data.synthetic.test_examples=333"}), path);
  std::ifstream file(path);
  int lines = 0;
  for (float score; file >> score; ++lines) {
    EXPECT_GT(score, 0);
    EXPECT_LT(score, 1);
  }
  EXPECT_EQ(lines, 333);
}

TEST(Trainer, StopsEarlyWhenAucStopsRising) {
  // A rate of 0 after the first step: the second evaluation cannot be better.
  std::vector<std::string> sets = {"train.epochs=50", "eval.early_stopping=2", "eval.every=3",
                                   "tables.main.lr=1e-12", "optimizer.lr=1e-12"};
  const RunReport report = Train(SmallRun(sets));
  EXPECT_TRUE(report.stopped_early);
  EXPECT_LT(report.batches, 60);
  // Stages that ran ahead leave no trace: the rows are those of the batches trained.
  sets.push_back("train.queue=16");
  const RunReport deep = Train(SmallRun(sets));
  EXPECT_EQ(deep.batches, report.batches);
  EXPECT_EQ(deep.model_digest, report.model_digest);
}

TEST(Trainer, NamesTheBatchOfADivergedLoss) {
  try {
    Train(SmallRun({"tables.main.optimizer=sgd", "tables.main.lr=1e30", "optimizer.lr=1e30"}));
    FAIL() << "did not diverge";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kNumeric);
    EXPECT_THAT(e.what(), HasSubstr("the loss of batch "));
    EXPECT_THAT(e.what(), HasSubstr("Lower optimizer.lr"));
  }
}

TEST(Trainer, EndsCleanlyWhenAskedToStop) {
  const std::atomic<bool> stop{true};
  RunOptions options;
  options.show_progress = false;
  const RunReport report = TrainModel(PosixEnv(), SmallRun({"train.epochs=1000"}), options, stop);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.batches, 0);
  EXPECT_TRUE(report.evaluations.empty());
}

TEST(Trainer, HasManyMoreEpochsThanBatchesUnderWay) {
  const RunReport report =
      Train(SmallRun({"train.epochs=40", "train.queue=1", "data.synthetic.train_examples=300",
                      "data.synthetic.test_examples=0"}));
  EXPECT_EQ(report.examples, 40 * 300);
}

TEST(Trainer, RunsWithoutTestData) {
  const RunReport report = Train(SmallRun({"data.synthetic.test_examples=0"}));
  EXPECT_TRUE(report.evaluations.empty());
  EXPECT_GT(report.train_auc, 0.5);
}

TEST(Trainer, PackedRowsLearnAboutAsWellAndTakeLessMemory) {
  const std::vector<std::string> base = {"tables.main.dim=16", "train.epochs=3"};
  const RunReport floats = Train(SmallRun(base));
  for (const char* codec : {"fp16", "bf16", "int16", "int8"}) {
    std::vector<std::string> sets = base;
    sets.push_back(std::string("tables.main.weight_codec=") + codec);
    sets.push_back(std::string("tables.main.state_codec=") + codec);
    const RunReport packed = Train(SmallRun(sets));
    EXPECT_NEAR(packed.evaluations.back().metrics.auc, floats.evaluations.back().metrics.auc, 0.02)
        << codec;
    EXPECT_NE(packed.model_digest, floats.model_digest);
    EXPECT_LT(packed.arena_bytes, floats.arena_bytes) << codec;
    EXPECT_EQ(packed.saturated, 0) << codec;
  }
  EXPECT_GT(floats.evaluations.back().metrics.auc, 0.55);
}

TEST(Trainer, ShowsHowManyNumbersWereTooLargeForTheirCodec) {
  const RunConfig config =
      SmallRun({"tables.main.weight_codec=fp16", "tables.main.optimizer=sgd", "tables.main.lr=1e9",
                "train.max_batches=1", "data.synthetic.test_examples=0"});
  const RunReport report = Train(config);
  EXPECT_GT(report.saturated, 0);
  EXPECT_EQ(nlohmann::json::parse(SummaryJson(config, report))["saturated"], report.saturated);
  EXPECT_THAT(ReportTable(config, report), HasSubstr("numbers too large for their codec"));
}

TEST(Trainer, SummaryIsJsonWithTheFixedNames) {
  const RunConfig config = SmallRun({});
  const auto json = nlohmann::json::parse(SummaryJson(config, Train(config)));
  for (const char* name :
       {"auc", "logloss", "examples_per_second", "stages", "tiers", "peak_rss", "model_digest",
        "best_auc", "copc", "normalized_entropy", "auc_bucketed", "bottleneck", "skipped_rows"})
    EXPECT_TRUE(json.contains(name)) << name;
  for (const char* stage : {"read", "plan", "train"}) EXPECT_TRUE(json["stages"].contains(stage));
  EXPECT_GT(json["tiers"]["memory"]["hits"], 0);
}

TEST(RunConfig, ExplainsWhatDoesNotFitTogether) {
  EXPECT_EQ(UsageError({"data.synthetic.slots=1", "data.slots=[{name=\"a\", table=\"mian\"}]"}),
            "slot `a` uses table `mian`, which the config does not have; did you mean `main`?");
  EXPECT_THAT(UsageError({"tables.unused.dim=3"}), HasSubstr("no slot uses [tables.unused]"));
  EXPECT_THAT(UsageError({"data.format=csv", "data.slots=[\"a\"]"}),
              HasSubstr("data.train is empty"));
  EXPECT_THAT(UsageError({"train.schedule.decay=linear"}),
              HasSubstr("needs train.schedule.decay_batches"));
  EXPECT_THAT(
      [] {
        Train(SmallRun({"model.kind=lr", "tables.main.weight_codec=int8"}));
      },
      testing::ThrowsMessage<Error>(HasSubstr("no vector to quantize")));
  EXPECT_EQ(UsageError({"model.kind=deepfn"}),
            "--set model.kind: `model.kind` is \"deepfn\", expected one of \"lr\", \"fm\", "
            "\"widedeep\", \"deepfm\", \"dcnv2\", \"dlrm\"");
}

TEST(Schedule, WarmsUpThenDecays) {
  ScheduleConfig s;
  EXPECT_EQ(s.Factor(1), 1);
  s.warmup = 3;
  EXPECT_EQ(s.Factor(1), 0.25);
  EXPECT_EQ(s.Factor(3), 0.75);
  EXPECT_EQ(s.Factor(4), 1);
  s.decay_batches = 10;
  s.final_factor = 0.1;
  s.decay = DecayKind::kLinear;
  EXPECT_NEAR(s.Factor(8), 0.55, 1e-12);
  EXPECT_NEAR(s.Factor(100), 0.1, 1e-12);
  s.decay = DecayKind::kCosine;
  EXPECT_NEAR(s.Factor(8), 0.55, 1e-12);
  EXPECT_NEAR(s.Factor(100), 0.1, 1e-12);
  s.decay = DecayKind::kExponential;
  EXPECT_NEAR(s.Factor(13), 0.5, 1e-12);
  EXPECT_NEAR(s.Factor(1000), 0.1, 1e-12);
}

}  // namespace
}  // namespace terrace
