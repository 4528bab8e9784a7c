#include "cli/policy_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/env.h"
#include "base/error.h"
#include "cli/commands.h"
#include "data/open_data.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

const std::atomic<bool> kGoOn{false};

DataConfig SmallZipf() {
  DataConfig data;
  data.format = DataFormat::kSynthetic;
  data.synthetic.train_examples = 6'000;
  data.synthetic.slots = 4;
  data.synthetic.values_per_slot = 3;
  data.synthetic.features = 5'000;
  data.synthetic.dense = 0;
  return data;
}

std::unique_ptr<DataStream> Open(const DataConfig& data) {
  return OpenData(PosixEnv(), data, FeatureSpec::Resolve(data), {});
}

PolicyTrace TraceOf(const std::vector<std::vector<uint32_t>>& batches) {
  PolicyTrace trace;
  for (const auto& keys : batches) {
    trace.batches.push_back({Array<uint32_t>(keys.begin(), keys.end()), 10});
    for (const uint32_t key : keys) trace.keys = std::max<int64_t>(trace.keys, key + 1);
  }
  return trace;
}

template <typename F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(RecordTrace, NumbersTheDistinctKeysOfEachBatch) {
  const PolicyTrace trace = RecordTrace(*Open(SmallZipf()), 500, kGoOn);
  ASSERT_EQ(trace.batches.size(), 12);
  EXPECT_EQ(trace.examples(), 6'000);
  const auto stream = Open(SmallZipf());
  std::map<uint64_t, uint32_t> numbers;
  Batch batch;
  for (const TraceBatch& found : trace.batches) {
    ASSERT_TRUE(stream->Next(500, &batch));
    std::map<uint64_t, bool> in_batch;
    Array<uint32_t> expected;
    for (const uint64_t key : batch.groups[0].keys) {
      const auto next = static_cast<uint32_t>(numbers.size());
      numbers.emplace(key, next);
      if (in_batch.emplace(key, true).second) expected.push_back(numbers[key]);
    }
    ASSERT_EQ(found.keys, expected);
  }
  EXPECT_EQ(trace.keys, static_cast<int64_t>(numbers.size()));
}

TEST(RecordTrace, WantsTwoBatches) {
  EXPECT_THAT(ErrorOf([] { RecordTrace(*Open(SmallZipf()), 10'000, kGoOn); }),
              HasSubstr("raise --examples or lower --batch"));
}

TEST(ScorePolicy, CountsTheSecondHalf) {
  // Two rows. Of the batches from 4 on the first has a new key, then 1 is still there, 2 is not.
  const PolicyTrace trace = TraceOf({{0, 1}, {1, 2}, {1}, {3}, {1}, {2}});
  const PolicyScore score = ScorePolicy(trace, PolicyKind::kLru, {.rows = 2, .window = 0});
  EXPECT_EQ(score.examples, 30);
  EXPECT_EQ(score.fresh, 1);
  EXPECT_EQ(score.hits, 1);
  EXPECT_EQ(score.misses, 1);
  EXPECT_DOUBLE_EQ(score.hit_rate(), 0.5);
  EXPECT_DOUBLE_EQ(score.misses_per_example(), 1.0 / 30);
}

TEST(ScorePolicy, RowsThatAreKnownToBeUsedStay) {
  // Four rows. Batch 5 needs room, and 0 is the oldest.
  const PolicyTrace trace = TraceOf({{0}, {1}, {2}, {3}, {4}, {0}});
  const auto misses = [&](int64_t window) {
    return ScorePolicy(trace, PolicyKind::kNextUse, {.rows = 4, .window = window}).misses;
  };
  EXPECT_EQ(misses(0), 1);
  EXPECT_EQ(misses(1), 0);
  EXPECT_EQ(misses(1'000), 0) << "a window that does not fit is cut";
}

TEST(ScorePolicy, NothingIsMissedWhereAllFits) {
  const PolicyTrace trace = RecordTrace(*Open(SmallZipf()), 500, kGoOn);
  for (const PolicyKind kind : {PolicyKind::kLru, PolicyKind::kLruLfu, PolicyKind::kClock}) {
    const PolicyScore score = ScorePolicy(trace, kind, {.rows = trace.keys, .window = 4});
    EXPECT_EQ(score.misses, 0);
    EXPECT_EQ(score.hit_rate(), 1);
  }
}

TEST(ScorePolicy, TheDefaultMissesLessThanLruOnAPowerLaw) {
  const PolicyTrace trace = RecordTrace(*Open(SmallZipf()), 100, kGoOn);
  std::map<PolicyKind, PolicyScore> scores;
  for (const PolicyKind kind :
       {PolicyKind::kLru, PolicyKind::kLruLfu, PolicyKind::kClock, PolicyKind::kNextUse}) {
    scores[kind] = ScorePolicy(trace, kind, {.rows = trace.keys / 8, .window = 4});
    int64_t lookups = 0;
    for (size_t b = trace.batches.size() / 2; b < trace.batches.size(); ++b)
      lookups += static_cast<int64_t>(trace.batches[b].keys.size());
    EXPECT_EQ(scores[kind].hits + scores[kind].misses + scores[kind].fresh, lookups);
    EXPECT_EQ(scores[kind].fresh, scores[PolicyKind::kLru].fresh);
  }
  EXPECT_LT(scores[PolicyKind::kClock].misses, scores[PolicyKind::kLru].misses);
  EXPECT_LT(scores[PolicyKind::kNextUse].misses, scores[PolicyKind::kClock].misses);
  EXPECT_LE(scores[kDefaultPolicy].misses, scores[PolicyKind::kLruLfu].misses);
}

TEST(ScorePolicy, ABatchHasToFit) {
  const PolicyTrace trace = TraceOf({{0, 1, 2}, {0, 1}});
  EXPECT_THAT(ErrorOf([&] { ScorePolicy(trace, PolicyKind::kLru, {.rows = 2}); }),
              HasSubstr("2 rows does not hold the 3 keys of the largest batch"));
}

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome RunBench(std::vector<std::string> args) {
  args.insert(args.begin(), {"terrace", "bench", "policies"});
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = RunCommandLine(static_cast<int>(argv.size()), argv.data());
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(BenchPolicies, ShowsEveryPolicy) {
  const std::string json = ::testing::TempDir() + "policies.json";
  const Outcome run = RunBench({"--examples", "3000", "--keys", "20000", "--batch", "100",
                                "--slots", "4", "--values", "3", "--json", json});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* name : {"\nlru ", "\nlru-lfu ", "\nclock ", "\nnext-use "})
    EXPECT_THAT(run.out, HasSubstr(name));
  const auto read = nlohmann::json::parse(std::ifstream(json));
  EXPECT_EQ(read["examples"], 3000);
  EXPECT_EQ(read["policies"].size(), 4);
  EXPECT_LT(read["policies"][3]["misses"], read["policies"][0]["misses"]);
}

TEST(BenchPolicies, ReadsTheDataOfATrainingConfig) {
  const Outcome run = RunBench({TERRACE_SOURCE_DIR "/examples/synthetic.toml", "--examples", "4000",
                                "--set", "train.batch=200", "--share", "4"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("trace: 4,000 examples, 20 batches"));
}

TEST(BenchPolicies, RefusesWhatMakesNoSense) {
  const auto refused = [](std::vector<std::string> args, const std::string& why) {
    const Outcome run = RunBench(std::move(args));
    EXPECT_EQ(run.code, 2) << why;
    EXPECT_THAT(run.err, HasSubstr(why));
  };
  refused({"--share", "0"}, "--share");
  refused({"--share", "4", "--rows", "100"}, "--share");
  refused({"--zipf", "-1"}, "--zipf");
  refused({"--set", "train.batch=2"}, "config");
  refused({"x.toml", "--slots", "3"}, "--slots");
  refused({"no_such_file.toml"}, "no_such_file.toml");
  refused({"--examples", "2000", "--batch", "500", "--rows", "10"}, "10 rows does not hold the");
}

}  // namespace
}  // namespace terrace
