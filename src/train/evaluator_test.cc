// Invariant: a snapshot's model gives bit for bit the metrics and predictions that training had,
// wherever its rows are.
#include "train/evaluator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/test_dir.h"
#include "train/random_runs_testing.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

const std::atomic<bool> kGoOn{false};

RunReport Evaluate(const std::string& snapshot, const std::vector<std::string>& sets,
                   const std::string& predictions, int64_t memory_rows = 0) {
  const auto opened = Snapshot::Open(PosixEnv(), snapshot);
  EvalOptions options;
  options.show_progress = false;
  options.predictions_path = predictions;
  options.memory_rows = memory_rows;
  return EvaluateSnapshot(*opened, ReadEvalConfig(*opened, sets), options, kGoOn);
}

std::string Predict(const std::string& snapshot, const std::vector<std::string>& sets,
                    int64_t memory_rows = 0) {
  const auto opened = Snapshot::Open(PosixEnv(), snapshot);
  EvalOptions options;
  options.show_progress = false;
  options.memory_rows = memory_rows;
  std::string lines;
  PredictSnapshot(
      *opened, ReadEvalConfig(*opened, sets), options,
      [&](std::string_view more) { lines += more; }, kGoOn);
  return lines;
}

void ExpectSame(const RunReport& got, const RunReport& expected) {
  EXPECT_EQ(got.model_digest, expected.model_digest);
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.batches, expected.batches);
  EXPECT_EQ(got.examples, expected.examples);
  ASSERT_EQ(got.evaluations.size(), 1u);
  const Evaluation& a = got.evaluations[0];
  const Evaluation& b = expected.evaluations.back();
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.metrics.examples, b.metrics.examples);
  EXPECT_EQ(a.metrics.logloss, b.metrics.logloss);
  EXPECT_EQ(fmt::format("{}", a.metrics.auc), fmt::format("{}", b.metrics.auc));
  EXPECT_EQ(a.metrics.copc, b.metrics.copc);
}

void ExpectExact(uint64_t number) {
  SCOPED_TRACE(number);
  const TestDir dir;
  TierCase run = MakeCase(number);
  WriteData(number, dir.path(), &run);
  const std::string predictions = dir.path() + "/predictions";
  const std::string snapshots = dir.path() + "/snapshots";
  std::vector<std::string> sets =
      Joined(run.model, {"snapshot.dir=" + snapshots, "snapshot.memory=16MB"});
  const RunConfig config = SmallRun(sets);
  const RunReport expected = Train(config, predictions);
  const std::string scores = ReadWholeFile(PosixEnv(), predictions);
  // The training data is not needed.
  PosixEnv().Remove(dir.path() + "/train.csv");

  const std::string again = dir.path() + "/again";
  const std::string threads = fmt::format("train.threads={}", 1 + number % 3);
  ExpectSame(Evaluate(snapshots, {threads}, again), expected);
  EXPECT_EQ(ReadWholeFile(PosixEnv(), again), scores);
  EXPECT_EQ(Predict(snapshots, {threads}), scores);

  const int64_t rows = 2 * MostRowsOfABatch([&] {
                         RunConfig test = config;
                         test.data.train = test.data.test;
                         return test;
                       }());
  const std::vector<std::string> tiers = {
      fmt::format("train.window={}", 1 + number % 4), "train.threads=2",
      fmt::format("tiers.disk.memory={}MB", 8 * config.tables.size()),
      fmt::format("tiers.memory.policy={}", number % 2 == 0 ? "lru" : "next-use")};
  const RunReport tiered = Evaluate(snapshots, tiers, again, rows);
  EXPECT_TRUE(tiered.tiers.used);
  ExpectSame(tiered, expected);
  EXPECT_EQ(ReadWholeFile(PosixEnv(), again), scores);
  EXPECT_EQ(Predict(snapshots, tiers, rows), scores);
}

TEST(Evaluator, RandomRunsAreEvaluatedBitEqual) {
  for (uint64_t number = 1; number <= 40 && !::testing::Test::HasFailure(); ++number)
    ExpectExact(number);
}

class SavedRun : public ::testing::Test {
 protected:
  SavedRun() {
    Train(SmallRun({"snapshot.dir=" + snapshots(), "snapshot.memory=16MB", "snapshot.every=4",
                    "eval.every=4", "train.max_batches=10"}),
          dir_.path() + "/scores");
  }
  std::string snapshots() const { return dir_.path() + "/snapshots"; }
  std::string ErrorOf(const std::vector<std::string>& sets) {
    try {
      Evaluate(snapshots(), sets, "");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return e.what();
    }
    return "";
  }

  const TestDir dir_;
};

TEST_F(SavedRun, EverySnapshotHasTheEvaluationOfItsBatch) {
  const RunReport run = Train(SmallRun({"eval.every=4", "train.max_batches=10"}));
  ASSERT_EQ(run.evaluations.size(), 3u);
  for (const Evaluation& e : run.evaluations) {
    const RunReport got = Evaluate(fmt::format("{}/{:012}", snapshots(), e.step), {}, "");
    EXPECT_EQ(got.evaluations.at(0).step, e.step);
    EXPECT_EQ(got.evaluations.at(0).metrics.logloss, e.metrics.logloss);
    EXPECT_EQ(got.evaluations.at(0).metrics.auc, e.metrics.auc);
  }
}

TEST_F(SavedRun, SettingsOfTheModelAreRefused) {
  EXPECT_THAT(ErrorOf({"tables.main.dim=8"}), HasSubstr("tables.main.dim: was 4, is 8"));
  EXPECT_THAT(ErrorOf({"seed=8"}), HasSubstr("seed: was 7, is 8"));
  EXPECT_THAT(ErrorOf({"data.synthetic.zipf=1"}), HasSubstr("data.synthetic.zipf: was"));
  EXPECT_THAT(ErrorOf({"optimizer.lr=0.5"}), HasSubstr("leave them out:\n  optimizer.lr: was"));
  EXPECT_THAT(ErrorOf({"train.bacth=8"}), HasSubstr("did you mean `train.batch`?"));
  EXPECT_EQ(ErrorOf({"train.batch=100", "train.threads=2", "tiers.memory.budget=10GB",
                     "data.synthetic.test_examples=100", "snapshot.every=7"}),
            "");
}

TEST_F(SavedRun, GeneratedDataIsEvaluatedButNotPredicted) {
  EXPECT_EQ(Evaluate(snapshots(), {"data.synthetic.test_examples=77"}, "")
                .evaluations.at(0)
                .metrics.examples,
            77);
  try {
    Predict(snapshots(), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("`terrace data gen` writes such data to files"));
  }
}

TEST_F(SavedRun, AStopLeavesNoEvaluationAndNoFile) {
  const auto opened = Snapshot::Open(PosixEnv(), snapshots());
  EvalOptions options;
  options.show_progress = false;
  options.predictions_path = dir_.path() + "/stopped";
  const std::atomic<bool> stop{true};
  const RunReport report = EvaluateSnapshot(*opened, ReadEvalConfig(*opened, {}), options, stop);
  EXPECT_TRUE(report.interrupted);
  EXPECT_TRUE(report.evaluations.empty());
  EXPECT_FALSE(PosixEnv().Exists(options.predictions_path));
}

}  // namespace
}  // namespace terrace
