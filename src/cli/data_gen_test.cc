#include "cli/data_gen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/data_gen_text.h"
#include "data/data_testing.h"
#include "data/memory_env.h"
#include "data/synthetic.h"
#include "model/metrics.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

const std::atomic<bool> kGoOn{false};

GenOptions Options(DataFormat format) {
  GenOptions options;
  options.path = "out";
  options.format = format;
  options.examples = 500;
  options.synthetic.features = 300;
  if (format != DataFormat::kCriteo) {
    options.synthetic.slots = 3;
    options.synthetic.dense = 2;
    options.synthetic.values_per_slot = 2;
  }
  return options;
}

// What the generator made, with ranks for keys.
Batch Generated(const GenOptions& options) {
  DataConfig data;
  data.format = DataFormat::kSynthetic;
  data.synthetic = options.synthetic;
  data.synthetic.train_examples = data.synthetic.test_examples = options.examples;
  const auto producer = MakeSyntheticProducer(data.synthetic, FeatureSpec::Resolve(data),
                                              options.part, SyntheticKeys::kValues);
  Batch all = MakeBatch(producer->shape());
  while (const auto work = producer->Claim()) {
    Batch chunk = MakeBatch(producer->shape());
    producer->Produce(*work, &chunk);
    AppendExamples(chunk, 0, chunk.examples, &all);
  }
  return all;
}

// The [data] section that the command advises.
DataConfig ReadingConfig(const GenOptions& options) {
  const std::string toml = ExampleText(options.format, options.synthetic).ReadingConfig();
  const std::string section = "[data]\n";
  EXPECT_TRUE(toml.starts_with(section));
  DataConfig config = DataConfigFrom(toml.substr(section.size()));
  config.train = {options.path};
  return config;
}

Batch ReadBack(MemoryEnv& env, const GenOptions& options) {
  return ReadAll(env, ReadingConfig(options));
}

class GenFormats : public ::testing::TestWithParam<DataFormat> {};

TEST_P(GenFormats, ReadsBackWithTheAdvisedConfig) {
  MemoryEnv env;
  const GenOptions options = Options(GetParam());
  const GenReport report = GenerateFile(env, options, kGoOn);
  const Batch expected = Generated(options);
  const Batch batch = ReadBack(env, options);

  EXPECT_EQ(batch.labels, expected.labels);
  size_t keys = expected.groups[0].keys.size();
  // Sparse formats hold dense columns as features with a value.
  const bool sparse = GetParam() == DataFormat::kLibsvm || GetParam() == DataFormat::kLibffm;
  if (sparse) keys += expected.dense.size();
  EXPECT_EQ(batch.groups[0].keys.size(), keys);
  EXPECT_EQ(report.examples, 500);
  EXPECT_EQ(report.file_bytes, static_cast<int64_t>(env.files["out"].size()));
  EXPECT_EQ(report.text_bytes, report.file_bytes);
  EXPECT_DOUBLE_EQ(report.best_auc, ExactAuc(expected.truth, expected.labels, {}));
  EXPECT_EQ(env.files.size(), 1u);
}

TEST_P(GenFormats, BytesDependNeitherOnThreadsNorOnCompression) {
  GenOptions options = Options(GetParam());
  options.examples = 30'000;
  MemoryEnv env;
  GenerateFile(env, options, kGoOn);
  const std::string plain = env.files["out"];
  options.threads = 3;
  const GenReport report = GenerateFile(env, options, kGoOn);
  EXPECT_TRUE(env.files["out"] == plain);
  const Batch expected = ReadBack(env, options);
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    options.compression = compression;
    const GenReport compressed = GenerateFile(env, options, kGoOn);
    EXPECT_EQ(compressed.text_bytes, report.text_bytes);
    EXPECT_LT(compressed.file_bytes, report.file_bytes);
    EXPECT_TRUE(SameExamples(ReadBack(env, options), expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GenFormats,
                         ::testing::Values(DataFormat::kCriteo, DataFormat::kCsv, DataFormat::kTsv,
                                           DataFormat::kLibsvm, DataFormat::kLibffm));

TEST(DataGen, CsvCellsAreRanksAndDenseValues) {
  MemoryEnv env;
  const GenOptions options = Options(DataFormat::kCsv);
  GenerateFile(env, options, kGoOn);
  EXPECT_TRUE(env.files["out"].starts_with("label,s0,s1,s2,d0,d1\n"));
  const Batch expected = Generated(options);
  const Batch batch = ReadBack(env, options);
  const FeatureSpec spec = FeatureSpec::Resolve(ReadingConfig(options));
  ASSERT_EQ(batch.groups[0].offsets, expected.groups[0].offsets);
  for (int64_t e = 0; e < batch.examples; ++e)
    for (int j = 0; j < 3; ++j) {
      std::vector<uint64_t> keys;
      for (uint64_t rank : BagOf(expected, 0, e, j))
        keys.push_back(TextKey(spec.slots[j].seed, std::to_string(rank)));
      ASSERT_EQ(BagOf(batch, 0, e, j), keys);
    }
  for (size_t i = 0; i < expected.dense.size(); ++i)
    ASSERT_NEAR(batch.dense[i], expected.dense[i], 0.5001e-4);
}

TEST(DataGen, CriteoCountsGiveTheDenseValuesUnderTheLog) {
  MemoryEnv env;
  const GenOptions options = Options(DataFormat::kCriteo);
  GenerateFile(env, options, kGoOn);
  const Batch expected = Generated(options);
  const Batch batch = ReadBack(env, options);
  ASSERT_EQ(batch.dense.size(), expected.dense.size());
  for (size_t i = 0; i < expected.dense.size(); ++i) {
    if (expected.dense[i] < 0) continue;  // small counts are coarse
    ASSERT_NEAR(batch.dense[i], expected.dense[i] + 3, 0.03);
  }
}

TEST(DataGen, LibsvmIndicesAreDistinctAcrossSlots) {
  MemoryEnv env;
  const GenOptions options = Options(DataFormat::kLibsvm);
  GenerateFile(env, options, kGoOn);
  const Batch expected = Generated(options);
  const Batch batch = ReadBack(env, options);
  const uint64_t seed = FeatureSpec::Resolve(ReadingConfig(options)).slots[0].seed;
  for (int64_t e = 0; e < batch.examples; ++e) {
    std::vector<uint64_t> keys;
    for (int j = 0; j < 3; ++j)
      for (uint64_t rank : BagOf(expected, 0, e, j))
        keys.push_back(IntegerKey(seed, static_cast<uint64_t>(j) * 300 + rank + 1));
    keys.push_back(IntegerKey(seed, 901));
    keys.push_back(IntegerKey(seed, 902));
    ASSERT_EQ(BagOf(batch, 0, e, 0), keys);
  }
}

TEST(DataGen, LibffmFieldsAreSlotsThenDenseColumns) {
  MemoryEnv env;
  const GenOptions options = Options(DataFormat::kLibffm);
  GenerateFile(env, options, kGoOn);
  const Batch expected = Generated(options);
  const Batch batch = ReadBack(env, options);
  ASSERT_EQ(batch.groups[0].slots, 5);
  const FeatureSpec spec = FeatureSpec::Resolve(ReadingConfig(options));
  for (int64_t e = 0; e < batch.examples; ++e) {
    const std::vector<uint64_t> ranks = BagOf(expected, 0, e, 1);
    const std::vector<uint64_t> keys = BagOf(batch, 0, e, 1);
    ASSERT_EQ(keys.size(), ranks.size());
    for (size_t i = 0; i < keys.size(); ++i)
      ASSERT_EQ(keys[i], IntegerKey(spec.slots[1].seed, ranks[i]));
    const uint32_t dense = batch.groups[0].offsets[e * 5 + 4];
    ASSERT_NEAR(batch.groups[0].values[dense], expected.dense[e * 2 + 1], 0.5001e-4);
  }
}

TEST(DataGen, TestPartIsFresh) {
  MemoryEnv env;
  GenOptions options = Options(DataFormat::kCsv);
  GenerateFile(env, options, kGoOn);
  const Batch train = ReadBack(env, options);
  options.part = DataPart::kTest;
  GenerateFile(env, options, kGoOn);
  const Batch test = ReadBack(env, options);
  EXPECT_NE(train.labels, test.labels);
  EXPECT_NE(train.dense, test.dense);
}

TEST(DataGen, LeavesNoFileWhenInterrupted) {
  MemoryEnv env;
  env.files["out"] = "older";
  const std::atomic<bool> stop{true};
  EXPECT_THAT(ErrorOf([&] { GenerateFile(env, Options(DataFormat::kCsv), stop); }),
              HasSubstr("interrupted after 500 of 500 rows; no file was left"));
  EXPECT_EQ(env.files.size(), 1u);
  EXPECT_EQ(env.files["out"], "older");
}

TEST(DataGen, RefusesShapesThatTheFormatCannotHold) {
  GenOptions options = Options(DataFormat::kCsv);
  EXPECT_THAT(ErrorOf([&] { ExampleText(DataFormat::kCriteo, options.synthetic); }),
              HasSubstr("26 slots of one value and 13 dense columns; found 3 slots of 2, 2 dense. "
                        "Use --format csv"));
  options.synthetic.features = INT64_MAX / 3;
  EXPECT_THAT(ErrorOf([&] { ExampleText(DataFormat::kLibsvm, options.synthetic); }),
              HasSubstr("--slots 3 leaves room for --features"));
  EXPECT_EQ(ErrorOf([&] { ExampleText(DataFormat::kLibffm, options.synthetic); }), "no error");
}

TEST(DataGen, SaysWhatItWroteAndHowToTrainOnIt) {
  GenOptions options = Options(DataFormat::kTsv);
  options.path = "clicks.tsv.gz";
  options.compression = Compression::kGzip;
  const GenReport report{.examples = 1234567,
                         .text_bytes = 3 << 20,
                         .file_bytes = 1 << 20,
                         .label_rate = 0.25,
                         .best_auc = 0.8125,
                         .seconds = 2};
  EXPECT_EQ(DescribeGenerated(options, report),
            "wrote clicks.tsv.gz: 1234567 rows, 1.00 MiB (3.00 MiB of text) in 2.00 s, "
            "1.50 MiB/s of text\n"
            "label rate  0.2500\n"
            "best AUC    0.8125  (of the probabilities that the labels were drawn from)\n"
            "\n"
            "Train on it with\n"
            "  [data]\n"
            "  format = \"tsv\"\n"
            "  slots = [{name = \"s0..s2\", separator = \"|\", pooling = \"mean\"}]\n"
            "  dense = [\"d0..d1\"]\n");
}

TEST(DataGen, TakesTheFormatFromThePath) {
  EXPECT_EQ(FormatOfPath("a.csv"), DataFormat::kCsv);
  EXPECT_EQ(FormatOfPath("a.csv.gz"), DataFormat::kCsv);
  EXPECT_EQ(FormatOfPath("a.svm.zst"), DataFormat::kLibsvm);
  EXPECT_EQ(FormatOfPath("a.ffm"), DataFormat::kLibffm);
  EXPECT_EQ(FormatOfPath("a.tsv.gz"), DataFormat::kCriteo);
  EXPECT_EQ(FormatOfPath("-"), DataFormat::kCriteo);
}

}  // namespace
}  // namespace terrace
