// Invariant: a run through the tiers gives bit for bit the model and the predictions of the plain
// in-memory run with one thread: whatever the data, model, optimizer, memory, window, policy,
// partitions and threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/random.h"
#include "base/test_dir.h"
#include "data/open_data.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

struct TierCase {
  std::vector<std::string> model;  // --set of both runs
  std::vector<std::string> tiers;  // --set of the run through the tiers
  double spare = 0;                // rows in memory beyond the smallest number, as a share of it
};

// Draws a case from its number.
class CaseMaker {
 public:
  explicit CaseMaker(uint64_t number) : random_(number, 0) {}

  TierCase Make() {
    Set(&case_.model, "seed", fmt::format("{}", Pick(1000)));
    Set(&case_.model, "data.synthetic.train_examples", fmt::format("{}", 300 + Pick(2000)));
    Set(&case_.model, "data.synthetic.test_examples", fmt::format("{}", 1 + Pick(500)));
    Set(&case_.model, "data.synthetic.features", fmt::format("{}", 20 + Pick(4000)));
    Set(&case_.model, "data.synthetic.values_per_slot", fmt::format("{}", 1 + Pick(4)));
    Set(&case_.model, "data.shuffle", OneOf({"0", "100", "900"}));
    Set(&case_.model, "model.kind", OneOf({"lr", "fm", "widedeep", "deepfm", "dcnv2", "dlrm"}));
    Set(&case_.model, "train.batch", OneOf({"1", "17", "64", "200", "256"}));
    if (case_.model.back() == "train.batch=1") {
      Set(&case_.model, "train.max_batches", "60");
      Set(&case_.model, "data.synthetic.test_examples", "20");
    }
    Set(&case_.model, "train.epochs", OneOf({"1", "2", "3"}));
    Set(&case_.model, "eval.every", OneOf({"0", "0", "0", "3", "7"}));
    if (Pick(4) == 0) Set(&case_.model, "eval.early_stopping", OneOf({"1", "2"}));
    const bool two_tables = Pick(2) == 0;
    const std::string dim = OneOf<std::string>({"4", "7", "16", "33"});
    for (const char* table : {"main", "other"}) {
      if (table == std::string("other") && !two_tables) break;
      Set(&case_.model, fmt::format("tables.{}.dim", table), dim);
      Set(&case_.model, fmt::format("tables.{}.optimizer", table),
          OneOf({"sgd", "adagrad", "rowadagrad", "adam", "ftrl"}));
      Set(&case_.model, fmt::format("tables.{}.init", table), OneOf({"zero", "uniform", "normal"}));
    }
    if (two_tables)
      Set(&case_.model, "data.slots",
          R"(["a", {name="b", table="other"}, "c", {name="d", table="other", pooling="mean"}, "e"])");

    case_.spare = OneOf({0.0, 0.0, 0.05, 0.3, 1.0, 4.0});
    Set(&case_.tiers, "train.threads", OneOf({"1", "2", "3"}));
    Set(&case_.tiers, "train.queue", OneOf({"1", "2", "5"}));
    Set(&case_.tiers, "train.window", OneOf({"1", "1", "2", "3", "5", "16"}));
    Set(&case_.tiers, "train.prefetch", OneOf({"1", "1", "2", "4"}));
    Set(&case_.tiers, "data.threads", OneOf({"1", "3"}));
    Set(&case_.tiers, "tiers.memory.policy", OneOf({"lru", "lru-lfu", "clock", "next-use"}));
    Set(&case_.tiers, "tiers.disk.partitions", OneOf({"1", "2", "4"}));
    Set(&case_.tiers, "tiers.disk.memory",
        two_tables ? OneOf({"12MB", "24MB"}) : OneOf({"6MB", "12MB"}));
    return case_;
  }

 private:
  uint64_t Pick(uint64_t n) { return random_.Next() % n; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Pick(values.size()));
  }
  static void Set(std::vector<std::string>* sets, const std::string& key,
                  const std::string& value) {
    sets->push_back(key + "=" + value);
  }

  RandomStream random_;
  TierCase case_;
};

// The most rows of one table that a batch uses: fewer cannot be in memory.
int64_t MostRowsOfABatch(const RunConfig& config) {
  const FeatureSpec spec = FeatureSpec::Resolve(config.data);
  size_t most = 1;
  for (int64_t epoch = 0; epoch <= config.train.epochs; ++epoch) {
    OpenDataOptions options;
    options.seed = static_cast<uint64_t>(config.seed);
    options.epoch = epoch;
    if (epoch == config.train.epochs) options.part = DataPart::kTest;
    const auto stream = OpenData(PosixEnv(), config.data, spec, options);
    Batch batch = MakeBatch(spec.shape);
    while (stream->Next(config.train.batch, &batch)) {
      for (const KeyGroup& group : batch.groups)
        most = std::max(most, std::set<uint64_t>(group.keys.begin(), group.keys.end()).size());
      ClearBatch(&batch);
    }
  }
  return static_cast<int64_t>(most);
}

struct Outcome {
  RunReport report;
  std::string predictions;
};

Outcome RunOnce(const RunConfig& config, int64_t memory_rows, const std::string& dir) {
  const std::atomic<bool> stop{false};
  RunOptions options;
  options.show_progress = false;
  options.predictions_path = dir + "/predictions";
  options.memory_rows = memory_rows;
  Outcome outcome;
  outcome.report = TrainModel(PosixEnv(), config, options, stop);
  outcome.predictions = ReadWholeFile(PosixEnv(), options.predictions_path);
  return outcome;
}

std::vector<std::string> Joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void ExpectExact(uint64_t number) {
  const TierCase tier_case = CaseMaker(number).Make();
  const std::vector<std::string> all = Joined(tier_case.model, tier_case.tiers);
  SCOPED_TRACE(
      fmt::format("repeat with: TERRACE_TIER_CASE={} build/release/train_test "
                  "--gtest_filter=TierExactness.RandomRuns\n{} spare {}",
                  number, fmt::join(all, " "), tier_case.spare));
  TestDir dir;
  const RunConfig plain = SmallRun(tier_case.model);
  const Outcome expected = RunOnce(plain, 0, dir.path());

  const RunConfig tiered = SmallRun(Joined(all, {"tiers.disk.path=" + dir.path() + "/rows"}));
  const int64_t least = MostRowsOfABatch(plain);
  const auto rows = static_cast<int64_t>((1 + tier_case.spare) * static_cast<double>(least));
  const Outcome got = RunOnce(tiered, rows, dir.path());
  EXPECT_EQ(got.report.model_digest, expected.report.model_digest);
  EXPECT_EQ(got.predictions, expected.predictions);
  EXPECT_EQ(got.report.rows, expected.report.rows);
  EXPECT_EQ(got.report.train_loss, expected.report.train_loss);
  EXPECT_EQ(got.report.batches, expected.report.batches);
  // All lookups are accounted for.
  const TieredStats& stats = got.report.tiers.rows;
  EXPECT_EQ(stats.lookups, expected.report.row_lookups);
  EXPECT_EQ(stats.lookups, stats.hits + stats.from_disk + stats.created);
  EXPECT_LE(stats.written, stats.evicted);
}

TEST(TierExactness, RandomRuns) {
  if (const char* one = std::getenv("TERRACE_TIER_CASE"); one != nullptr) {
    ExpectExact(std::strtoull(one, nullptr, 10));
    return;
  }
  const char* count = std::getenv("TERRACE_TIER_CASES");
  const uint64_t cases = count != nullptr ? std::strtoull(count, nullptr, 10) : 300;
  for (uint64_t number = 1; number <= cases && !HasFailure(); ++number) ExpectExact(number);
}

}  // namespace
}  // namespace terrace
