// Invariant: a run through the tiers gives bit for bit the model and the predictions of the plain
// in-memory run with one thread: whatever the data, model, optimizer, codecs, life of rows, memory,
// window, policy, partitions and threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/test_dir.h"
#include "train/random_runs_testing.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

struct Outcome {
  RunReport report;
  std::string predictions;
};

Outcome RunOnce(const RunConfig& config, const TierCase& c, int64_t memory_rows,
                const std::string& dir) {
  const std::atomic<bool> stop{false};
  RunOptions options;
  options.show_progress = false;
  options.predictions_path = dir + "/predictions";
  options.memory_rows = memory_rows;
  options.open_store = StoreOf(c);
  Outcome outcome;
  outcome.report = TrainModel(PosixEnv(), config, options, stop);
  outcome.predictions = ReadWholeFile(PosixEnv(), options.predictions_path);
  return outcome;
}

// Returns what the run through the tiers did.
RunReport ExpectExact(uint64_t number) {
  TierCase tier_case = MakeCase(number);
  TestDir dir;
  WriteData(number, dir.path(), &tier_case);
  const std::vector<std::string> all = Joined(tier_case.model, tier_case.tiers);
  SCOPED_TRACE(
      fmt::format("repeat with: TERRACE_TIER_CASE={} build/release/train_test "
                  "--gtest_filter=TierExactness.RandomRuns\n{} spare {}",
                  number, fmt::join(all, " "), tier_case.spare));
  const RunConfig plain = SmallRun(tier_case.model);
  const Outcome expected = RunOnce(plain, tier_case, 0, dir.path());

  const RunConfig tiered = SmallRun(Joined(all, {"tiers.disk.path=" + dir.path() + "/rows"}));
  const int64_t least = MostRowsOfABatch(plain);
  const auto rows = static_cast<int64_t>((1 + tier_case.spare) * static_cast<double>(least));
  const Outcome got = RunOnce(tiered, tier_case, rows, dir.path());
  EXPECT_EQ(got.report.model_digest, expected.report.model_digest);
  EXPECT_EQ(got.predictions, expected.predictions);
  EXPECT_EQ(got.report.rows, expected.report.rows);
  EXPECT_EQ(got.report.train_loss, expected.report.train_loss);
  EXPECT_EQ(got.report.saturated, expected.report.saturated);
  EXPECT_EQ(got.report.life.admitted, expected.report.life.admitted);
  EXPECT_EQ(got.report.life.refused, expected.report.life.refused);
  EXPECT_EQ(got.report.batches, expected.report.batches);
  // All lookups are accounted for.
  const TieredStats& stats = got.report.tiers.rows;
  EXPECT_EQ(stats.lookups, expected.report.row_lookups);
  EXPECT_EQ(stats.lookups, stats.hits + stats.from_disk + stats.created);
  EXPECT_LE(stats.written, stats.evicted);
  return got.report;
}

TEST(TierExactness, RandomRuns) {
  if (const char* one = std::getenv("TERRACE_TIER_CASE"); one != nullptr) {
    ExpectExact(std::strtoull(one, nullptr, 10));
    return;
  }
  const char* count = std::getenv("TERRACE_TIER_CASES");
  const uint64_t cases = count != nullptr ? std::strtoull(count, nullptr, 10) : 300;
  TierReport sum;
  LifeReport lives;
  for (uint64_t number = 1; number <= cases && !HasFailure(); ++number) {
    const RunReport run = ExpectExact(number);
    const TierReport& one = run.tiers;
    lives.admitted += run.life.admitted;
    lives.refused += run.life.refused;
    lives.expired += run.life.expired;
    sum.rows.Add(one.rows);
    sum.disk.Add(one.disk);
    sum.windows.cut += one.windows.cut;
    sum.windows.squeezed += one.windows.squeezed;
  }
  if (HasFailure() || cases < 300) return;
  // What is rare in a run came up all the same.
  EXPECT_GT(sum.windows.cut, 0);
  EXPECT_GT(sum.windows.squeezed, 0);
  EXPECT_GT(sum.rows.eval_evicted, 0);
  EXPECT_GT(sum.rows.from_disk, 0);
  EXPECT_GT(sum.disk.page_reads, 0);
  EXPECT_GT(sum.disk.merges, 0);
  EXPECT_GT(sum.disk.expired, 0);
  EXPECT_GT(sum.rows.expired, 0);
  EXPECT_GT(lives.admitted, 0);
  EXPECT_GT(lives.refused, 0);
  EXPECT_GT(lives.expired, sum.disk.expired + sum.rows.expired);
}

}  // namespace
}  // namespace terrace
