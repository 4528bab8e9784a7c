// Invariant: a run that is cut off at any batch and resumed, again and again, each time with other
// tiers and threads, ends with bit for bit the model, the metrics and the predictions of one that
// was not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/random.h"
#include "base/test_dir.h"
#include "train/random_runs_testing.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

struct CutOff {};  // as by a crash

// Counts what came up.
struct Seen {
  int64_t resumes = 0, crashes = 0, stops = 0, tiered = 0, snapshots = 0;
};

class ResumedRun {
 public:
  explicit ResumedRun(uint64_t number) : random_(number, 7), case_(MakeCase(number)) {
    WriteData(number, dir_.path(), &case_);
  }

  void Expect(Seen* seen) {
    const RunConfig plain = SmallRun(case_.model);
    const std::string predictions = dir_.path() + "/predictions";
    const RunReport expected = Train(plain, predictions);
    const std::string expected_predictions = ReadWholeFile(PosixEnv(), predictions);
    PosixEnv().Remove(predictions);
    least_rows_ = MostRowsOfABatch(plain);
    RunReport got;
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 50);
      try {
        got = Attempt(attempt, seen);
      } catch (const CutOff&) {
        ++seen->crashes;
        continue;
      }
      if (!got.interrupted) break;
      ++seen->stops;
    }
    seen->snapshots += got.snapshots.taken;
    EXPECT_EQ(got.snapshots.failed, 0) << got.snapshots.failure;
    EXPECT_EQ(got.model_digest, expected.model_digest);
    EXPECT_EQ(ReadWholeFile(PosixEnv(), predictions), expected_predictions);
    EXPECT_EQ(got.rows, expected.rows);
    EXPECT_EQ(got.examples, expected.examples);
    EXPECT_EQ(got.batches, expected.batches);
    EXPECT_EQ(got.epochs, expected.epochs);
    EXPECT_EQ(got.stopped_early, expected.stopped_early);
    EXPECT_EQ(got.train_loss, expected.train_loss);
    if (!std::isnan(expected.train_auc)) {
      EXPECT_EQ(got.train_auc, expected.train_auc);
    }
    EXPECT_EQ(got.saturated, expected.saturated);
    EXPECT_EQ(got.life.admitted, expected.life.admitted);
    EXPECT_EQ(got.life.refused, expected.life.refused);
    ASSERT_EQ(got.evaluations.size(), expected.evaluations.size());
    for (size_t i = 0; i < got.evaluations.size(); ++i) {
      EXPECT_EQ(got.evaluations[i].step, expected.evaluations[i].step);
      EXPECT_EQ(got.evaluations[i].epoch, expected.evaluations[i].epoch);
      EXPECT_EQ(got.evaluations[i].metrics.logloss, expected.evaluations[i].metrics.logloss);
      // Of one class there is none.
      const double auc = expected.evaluations[i].metrics.auc;
      if (!std::isnan(auc)) {
        EXPECT_EQ(got.evaluations[i].metrics.auc, auc);
      }
    }
  }

 private:
  uint64_t Pick(uint64_t n) { return random_.Next() % n; }

  RunReport Attempt(int attempt, Seen* seen) {
    const uint64_t every = 1 + Pick(6);
    std::vector<std::string> sets =
        Joined(case_.model, {"snapshot.dir=" + dir_.path() + "/snapshots",
                             fmt::format("snapshot.every={}", every), "snapshot.memory=16MB",
                             fmt::format("snapshot.keep_last={}", 1 + Pick(3))});
    RunOptions options;
    options.show_progress = false;
    options.resume = true;
    options.predictions_path = dir_.path() + "/predictions";
    options.open_store = StoreOf(case_);
    if (Pick(3) > 0) {
      ++seen->tiered;
      sets = Joined(sets, case_.tiers);
      sets.push_back("tiers.disk.path=" + dir_.path() + "/rows");
      sets.push_back(fmt::format("train.window={}", 1 + Pick(5)));
      const double spare = static_cast<double>(Pick(30)) / 10;
      options.memory_rows = static_cast<int64_t>((1 + spare) * static_cast<double>(least_rows_));
    } else {
      sets.push_back(fmt::format("train.threads={}", 1 + Pick(3)));
    }
    std::atomic<bool> stop{false};
    const bool crash = Pick(2) == 0;
    int64_t left = attempt < 8 ? static_cast<int64_t>(1 + Pick(5 * every)) : -1;
    options.after_batch = [&](int64_t) {
      if (--left != 0) return;
      if (crash) throw CutOff();
      stop = true;
    };
    const RunReport report = TrainModel(PosixEnv(), SmallRun(sets), options, stop);
    seen->resumes += report.resumed_from >= 0 ? 1 : 0;
    return report;
  }

  TestDir dir_;
  RandomStream random_;
  TierCase case_;
  int64_t least_rows_ = 0;
};

void ExpectResumes(uint64_t number, Seen* seen) {
  SCOPED_TRACE(
      fmt::format("repeat with: TERRACE_RESUME_CASE={} build/release/train_test "
                  "--gtest_filter=ResumeExactness.RandomRuns",
                  number));
  ResumedRun(number).Expect(seen);
}

TEST(ResumeExactness, RandomRuns) {
  Seen seen;
  if (const char* one = std::getenv("TERRACE_RESUME_CASE"); one != nullptr) {
    ExpectResumes(std::strtoull(one, nullptr, 10), &seen);
    return;
  }
  const char* count = std::getenv("TERRACE_RESUME_CASES");
  const uint64_t cases = count != nullptr ? std::strtoull(count, nullptr, 10) : 100;
  for (uint64_t number = 1; number <= cases && !HasFailure(); ++number)
    ExpectResumes(number, &seen);
  EXPECT_GT(seen.resumes, 0);
  EXPECT_GT(seen.crashes, 0);
  EXPECT_GT(seen.stops, 0);
  EXPECT_GT(seen.tiered, 0);
  EXPECT_GT(seen.snapshots, 0);
}

}  // namespace
}  // namespace terrace
