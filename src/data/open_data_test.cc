#include "data/open_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "data/compress_testing.h"
#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCsv =
    "format = 'csv'\nslots = ['user', {name='tags', separator='|', missing='skip'}]\n"
    "dense = ['x']\n";

std::string CsvText(int64_t rows, uint64_t seed) {
  RandomStream random(seed, 0);
  std::string text = "label,user,tags,x\n";
  for (int64_t i = 0; i < rows; ++i) {
    text += random.Next() % 2 == 0 ? "0," : "1,";
    text += "u" + std::to_string(random.Next() % 1000) + ",";
    for (uint64_t n = random.Next() % 4; n > 0; --n) text += "t" + std::to_string(n) + "|";
    text += "," + std::to_string(i) + "\n";
  }
  return text;
}

// Two files of several blocks each, one of them compressed, and an empty one.
MemoryEnv LargeFiles() {
  MemoryEnv env;
  env.files["dir/a.csv"] = CsvText(150'000, 1);
  env.files["dir/b.csv"] = "";
  env.files["dir/c.csv"] = Zstd(CsvText(70'000, 2));
  env.files["dir/other.txt"] = "not data";
  return env;
}

TEST(OpenData, BatchesAreTheSameForAnyThreadCount) {
  MemoryEnv env = LargeFiles();
  for (const char* shuffle : {"shuffle = 0\n", "shuffle = 30000\n"}) {
    DataConfig config = DataConfigFrom(std::string(kCsv) + shuffle + "train = 'dir/*.csv'");
    config.threads = 1;
    const Batch expected = ReadAll(env, config, {.seed = 3}, 4096);
    EXPECT_EQ(expected.examples, 220'000);
    for (const int threads : {2, 3, 5}) {
      config.threads = threads;
      EXPECT_TRUE(SameExamples(ReadAll(env, config, {.seed = 3}, 4096), expected)) << threads;
    }
  }
}

TEST(OpenData, BatchesHaveExactlyTheSizeAskedForButTheLast) {
  MemoryEnv env = LargeFiles();
  const DataConfig config =
      DataConfigFrom(std::string(kCsv) + "shuffle = 1000\ntrain = ['dir/a.csv', 'dir/c.csv']");
  const auto stream = OpenData(env, config, FeatureSpec::Resolve(config), {});
  Batch batch;
  int64_t total = 0;
  while (stream->Next(777, &batch)) {
    total += batch.examples;
    if (total < 220'000) {
      ASSERT_EQ(batch.examples, 777);
    }
    ASSERT_EQ(batch.groups[0].offsets.size(), static_cast<size_t>(2 * batch.examples + 1));
  }
  EXPECT_EQ(total, 220'000);
  EXPECT_FALSE(stream->Next(777, &batch));
}

TEST(OpenData, ShuffleKeepsEveryExampleAndChangesWithTheEpoch) {
  MemoryEnv env = LargeFiles();
  DataConfig config = DataConfigFrom(std::string(kCsv) + "train = 'dir/a.csv'");
  std::vector<float> in_file_order = ReadAll(env, config, {}, 4096).dense;
  config.shuffle = 40'000;
  std::vector<float> first = ReadAll(env, config, {.seed = 1, .epoch = 0}, 4096).dense;
  const std::vector<float> second = ReadAll(env, config, {.seed = 1, .epoch = 1}, 4096).dense;
  EXPECT_EQ(first, ReadAll(env, config, {.seed = 1, .epoch = 0}, 1000).dense);
  EXPECT_NE(first, second);
  EXPECT_NE(first, in_file_order);
  std::sort(first.begin(), first.end());
  std::sort(in_file_order.begin(), in_file_order.end());
  EXPECT_EQ(first, in_file_order);
}

TEST(OpenData, TestDataAreNotShuffled) {
  MemoryEnv env;
  env.files["t"] = CsvText(100, 1);
  const DataConfig config = DataConfigFrom(std::string(kCsv) + "shuffle = 50\ntest = 't'");
  const Batch batch = ReadAll(env, config, {.part = DataPart::kTest, .seed = 1});
  EXPECT_TRUE(std::is_sorted(batch.dense.begin(), batch.dense.end()));
}

TEST(OpenData, MaxExamplesGivesThePrefix) {
  MemoryEnv env = LargeFiles();
  const DataConfig config =
      DataConfigFrom(std::string(kCsv) + "shuffle = 500\ntrain = 'dir/a.csv'");
  const Batch all = ReadAll(env, config, {});
  for (const int64_t limit : {0, 1, 499, 500, 1234, 150'000, 1'000'000}) {
    const Batch some = ReadAll(env, config, {.max_examples = limit}, 100);
    Batch prefix = MakeBatch(FeatureSpec::Resolve(config).shape);
    AppendExamples(all, 0, std::min<int64_t>(limit, all.examples), &prefix);
    EXPECT_TRUE(SameExamples(some, prefix)) << limit;
  }
}

TEST(OpenData, ShortReadsGiveTheSameExamples) {
  MemoryEnv env;
  env.files["a"] = CsvText(2000, 1);
  env.files["b"] = Gzip(CsvText(2000, 2));
  env.files["c"] = Zstd(CsvText(2000, 3));
  const DataConfig config = DataConfigFrom(std::string(kCsv) + "train = ['a', 'b', 'c']");
  const Batch expected = ReadAll(env, config);
  EXPECT_EQ(expected.examples, 6000);
  for (const size_t max_read : {1, 2, 1000}) {
    env.max_read = max_read;
    EXPECT_TRUE(SameExamples(ReadAll(env, config), expected)) << max_read;
  }
}

TEST(OpenData, ASystemErrorWhileReadingIsReported) {
  MemoryEnv env;
  env.files["a"] = CsvText(2000, 1);
  env.fail_after = 10'000;
  const DataConfig config = DataConfigFrom(std::string(kCsv) + "train = 'a'");
  EXPECT_EQ(ErrorOf([&] { ReadAll(env, config); }), "a: cannot read: Input/output error");
}

TEST(OpenData, WhatIsBeforeTheBadBlockIsDeliveredFirst) {
  for (const char* threads : {"threads = 1\n", "threads = 3\n"}) {
    MemoryEnv env;
    env.files["a"] = CsvText(150'000, 1) + "junk\n";
    const DataConfig config = DataConfigFrom(std::string(kCsv) + threads + "train = 'a'");
    const auto stream = OpenData(env, config, FeatureSpec::Resolve(config), {});
    Batch batch;
    int64_t delivered = 0;
    const std::string message = ErrorOf([&] {
      while (stream->Next(100, &batch)) delivered += batch.examples;
    });
    EXPECT_THAT(message, HasSubstr("a:150002: found 1 column, expected 4."));
    EXPECT_GT(delivered, 50'000);
  }
}

TEST(OpenData, ReadsStandardInputOnce) {
  MemoryEnv env;
  env.files["-"] = Gzip("label,user,tags,x\n1,u,,2\n0,u,,x\n");
  const DataConfig config = DataConfigFrom(std::string(kCsv) + "train = '-'");
  EXPECT_THAT(ErrorOf([&] { ReadAll(env, config); }), HasSubstr("standard input:3: column 4 (x)"));
  EXPECT_THAT(ErrorOf([&] { ReadAll(env, config, {.epoch = 1}); }),
              HasSubstr("data.train is standard input, which can be read only once"));
}

TEST(OpenData, FilesThatAreNotThereAreErrors) {
  MemoryEnv env;
  const DataConfig none = DataConfigFrom(kCsv);
  EXPECT_THAT(ErrorOf([&] { ReadAll(env, none); }), HasSubstr("data.train is empty"));
  const DataConfig pattern = DataConfigFrom(std::string(kCsv) + "test = 'day_*.csv'");
  EXPECT_THAT(ErrorOf([&] { ReadAll(env, pattern, {.part = DataPart::kTest}); }),
              HasSubstr("data.test: no file matches \"day_*.csv\""));
  const DataConfig file = DataConfigFrom(std::string(kCsv) + "train = ['a']");
  EXPECT_EQ(CodeOf([&] { ReadAll(env, file); }), ErrorCode::kIo);
}

// What was read ahead does not count: a shuffle block may be the whole file.
TEST(OpenData, ProgressFollowsWhatWasDelivered) {
  MemoryEnv env = LargeFiles();
  for (const char* shuffle : {"", "shuffle = 30000\n", "shuffle = 1000000\n"}) {
    const DataConfig config = DataConfigFrom(std::string(kCsv) + shuffle + "train = 'dir/a.csv'");
    const auto stream = OpenData(env, config, FeatureSpec::Resolve(config), {});
    EXPECT_EQ(stream->total_examples(), -1);
    EXPECT_EQ(stream->progress(), 0);
    Batch batch;
    double last = 0;
    for (double delivered = 1000; stream->Next(1000, &batch); delivered += 1000) {
      EXPECT_GE(stream->progress(), last);
      last = stream->progress();
      EXPECT_NEAR(last, delivered / 150'000, 0.05);
    }
    EXPECT_EQ(last, 1);
  }
}

TEST(OpenData, ProgressKnowsLimitsAndPipes) {
  MemoryEnv env = LargeFiles();
  const DataConfig config = DataConfigFrom(std::string(kCsv) + "train = 'dir/*.csv'");
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  Batch batch;
  const auto limited = OpenData(env, config, spec, {.max_examples = 2000});
  ASSERT_TRUE(limited->Next(1000, &batch));
  EXPECT_EQ(limited->progress(), 0.5);

  env.files["-"] = env.files["dir/a.csv"];
  const DataConfig pipe = DataConfigFrom(std::string(kCsv) + "train = '-'");
  const auto unknown = OpenData(env, pipe, spec, {});
  ASSERT_TRUE(unknown->Next(1000, &batch));
  EXPECT_EQ(unknown->progress(), -1);
}

TEST(OpenData, SyntheticDataHaveAKnownSize) {
  MemoryEnv env;
  const DataConfig config = DataConfigFrom(
      "format = 'synthetic'\n"
      "synthetic = {train_examples = 5000, test_examples = 100, slots = 3, features = 50}");
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  const auto stream = OpenData(env, config, spec, {});
  EXPECT_EQ(stream->total_examples(), 5000);
  Batch batch;
  ASSERT_TRUE(stream->Next(2500, &batch));
  EXPECT_EQ(stream->progress(), 0.5);
  EXPECT_EQ(OpenData(env, config, spec, {.part = DataPart::kTest})->total_examples(), 100);
  EXPECT_EQ(OpenData(env, config, spec, {.max_examples = 7})->total_examples(), 7);
  EXPECT_EQ(ReadAll(env, config, {}, 999).examples, 5000);
}

TEST(OpenData, CanBeAbandonedAtAnyTime) {
  MemoryEnv env = LargeFiles();
  const DataConfig config =
      DataConfigFrom(std::string(kCsv) + "shuffle = 20000\nthreads = 3\ntrain = 'dir/*.csv'");
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  for (int batches = 0; batches < 4; ++batches) {
    const auto stream = OpenData(env, config, spec, {});
    Batch batch;
    for (int i = 0; i < batches; ++i) stream->Next(100, &batch);
  }
}

}  // namespace
}  // namespace terrace
