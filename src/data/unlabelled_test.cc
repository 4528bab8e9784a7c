// Examples that are to be scored: labels may be missing, and each line of text gives one example.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/block_reader.h"
#include "data/data_testing.h"
#include "data/open_data.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCsv = "format = 'csv'\nslots = ['user']\ndense = ['x']\ntest = '-'\n";
const OpenDataOptions kUnlabelled{.part = DataPart::kTest, .labels = false};

Batch Read(const std::string& config, const std::string& text) {
  MemoryEnv env;
  env.files["-"] = text;
  return ReadAll(env, DataConfigFrom(config), kUnlabelled, 100);
}

std::string ErrorOf(const std::string& config, const std::string& text) {
  try {
    Read(config, text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Of the labelled example.
uint64_t KeyOf(const std::string& config, const std::string& text) {
  MemoryEnv env;
  env.files["-"] = text;
  return ReadAll(env, DataConfigFrom(config), {.part = DataPart::kTest}, 100).groups[0].keys.at(0);
}

TEST(Unlabelled, TheLabelsColumnOfACsvMayBeMissingOrHoldAnything) {
  const uint64_t key = KeyOf(kCsv, "label,user,x\n1,u,3\n");
  for (const char* text : {"user,x\nu,3\n", "label,user,x\n,u,3\n", "x,label,user\n3,what,u\n"}) {
    const Batch batch = Read(kCsv, text);
    EXPECT_THAT(batch.groups[0].keys, ElementsAre(key)) << text;
    EXPECT_THAT(batch.dense, ElementsAre(3)) << text;
    EXPECT_THAT(batch.labels, ElementsAre(0)) << text;
  }
  EXPECT_THAT(ErrorOf(kCsv, "x\n3\n"), HasSubstr("no column \"user\""));
}

TEST(Unlabelled, CriteoHasAColumnForLabelsOrNot) {
  const std::string config = "format = 'criteo'\ntest = '-'\n";
  std::string features;
  for (int i = 1; i <= 39; ++i) features += "\t" + std::to_string(i);
  const uint64_t key = KeyOf(config, "1" + features + "\n");
  for (const std::string& text : {features.substr(1), features, "7" + features, "?" + features}) {
    const Batch batch = Read(config, text + "\n" + text + "\n");
    EXPECT_EQ(batch.examples, 2);
    EXPECT_EQ(batch.groups[0].keys.at(0), key) << text;
  }
  EXPECT_THAT(ErrorOf(config, features.substr(1) + "\n" + features + "\n"),
              HasSubstr("standard input:2: found 40 columns, expected 39"));
}

TEST(Unlabelled, SparseLinesHaveAnyNumber) {
  for (const std::string format : {"libsvm", "libffm"}) {
    const std::string config = "format = '" + format + "'\nfields = 2\ntest = '-'\n";
    const std::string feature = format == "libsvm" ? " 5:1" : " 1:5:1";
    const std::string plain = format == "libsvm" ? "format = 'libsvm'\ntest = '-'\n" : config;
    const uint64_t key = KeyOf(plain, "1" + feature + "\n");
    for (const char* label : {"0", "-1", "17", "1e9"})
      EXPECT_THAT(Read(plain, label + feature + "\n").groups[0].keys, ElementsAre(key));
    EXPECT_THAT(ErrorOf(plain, feature + "\n"), HasSubstr("expected a number where labels are"));
  }
}

TEST(Unlabelled, EachLineGivesOneExample) {
  const std::string skip = "on_bad_row = 'skip'\n";
  const auto none = kNoExample;
  Batch batch = Read(kCsv + skip, "user,x\na,1\n\nb,bad\r\nc\nd,2\n\r\n");
  EXPECT_THAT(batch.labels, ElementsAre(0, none, none, none, 0, none));
  EXPECT_THAT(batch.dense, ElementsAre(1, 0, 0, 0, 2, 0));
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 1, 1, 1, 1, 2, 2));
  batch = Read("format = 'libsvm'\ntest = '-'\n" + skip, "0 1:1\n# none\n\nx 2:1\n0 1:x\n1 3:1");
  EXPECT_THAT(batch.labels, ElementsAre(0, none, none, none, none, 0));
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 1, 1, 1, 1, 1, 2));
  EXPECT_EQ(batch.groups[0].values.size(), 2u);
  // An empty line is no error.
  EXPECT_THAT(Read(kCsv, "user,x\n\na,1\n").labels, ElementsAre(none, 0));
  EXPECT_THAT(ErrorOf(kCsv, "user,x\na,1\n\nb,bad\n"), HasSubstr("input:4: column 2 (x): found"));
}

TEST(Unlabelled, TrainingNeedsLabelsAsEver) {
  MemoryEnv env;
  env.files["-"] = "user,x\nu,3\n";
  EXPECT_THROW(ReadAll(env, DataConfigFrom(kCsv), {.part = DataPart::kTest}, 100), Error);
}

// A pipe whose end never comes: to ask for more than there is fails.
TEST(Unlabelled, WhatAPipeHasDeliveredIsHandedOn) {
  MemoryEnv env;
  env.files["-"] = "user,x\na,1\nb,2\nc,3\n";
  env.max_read = 4;
  env.fail_after = static_cast<int64_t>(env.files["-"].size());
  DataConfig config = DataConfigFrom(kCsv);
  config.threads = 1;
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  const auto stream = OpenData(env, config, spec, kUnlabelled);
  Batch batch;
  EXPECT_TRUE(stream->Next(2, &batch));
  EXPECT_THAT(batch.dense, ElementsAre(1, 2));
  EXPECT_TRUE(stream->Next(1, &batch));
  EXPECT_THAT(batch.dense, ElementsAre(3));
  EXPECT_THROW(stream->Next(1, &batch), Error);
}

TEST(EagerBlocks, EndWhereLinesDo) {
  MemoryEnv env;
  env.files["a"] = "one\ntwo\nthree\n" + std::string(100, 'x') + "\nfour\nfive";
  for (const size_t max_read : {1, 2, 3, 7, 1000}) {
    env.max_read = max_read;
    BlockReader reader(env, {"a"}, {.block_bytes = 40, .max_line_bytes = 20, .eager = true});
    std::string text;
    int64_t line = 1;
    int64_t blocks = 0;
    while (const auto block = reader.Next()) {
      EXPECT_EQ(block->first_line, line);
      line += block->lines;
      text += block->text();
      ++blocks;
    }
    EXPECT_EQ(text, "one\ntwo\nthree\n" + std::string(22, 'x') + "\nfour\nfive\n") << max_read;
    EXPECT_TRUE(max_read > 1 || blocks == 6) << blocks;
  }
}

}  // namespace
}  // namespace terrace
