#include "cli/data_info_detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/data_gen.h"
#include "data/data_testing.h"
#include "data/memory_env.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

DataConfig Detect(const std::string& text, const std::string& label = "label") {
  MemoryEnv env;
  env.files["f"] = text;
  return DetectData(env, "f", std::nullopt, label);
}

std::string DetectError(const std::string& text) {
  return ErrorOf([&] { Detect(text); });
}

TEST(DetectData, RecognisesWhatDataGenWritesInEveryFormat) {
  const std::atomic<bool> go_on{false};
  for (const DataFormat format : {DataFormat::kCriteo, DataFormat::kCsv, DataFormat::kTsv,
                                  DataFormat::kLibsvm, DataFormat::kLibffm}) {
    for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
      MemoryEnv env;
      GenOptions options;
      options.path = "f";
      options.format = format;
      options.compression = compression;
      options.examples = 50;
      GenerateFile(env, options, go_on);
      EXPECT_EQ(DetectData(env, "f", std::nullopt, "label").format, format);
    }
  }
}

TEST(DetectData, ReadsCsvColumnsByTheirValues) {
  const DataConfig config = Detect(
      "user,label,age,price,genres,empty\n"
      "7,0,25,1.5,Action|Comedy,\n"
      "a9,1,30,,Drama,\n"
      "8,1,,2,Drama,\n");
  EXPECT_EQ(config.format, DataFormat::kCsv);
  ASSERT_EQ(config.slots.size(), 4u);
  EXPECT_EQ(config.slots[0].name, "user");
  EXPECT_EQ(config.slots[1].name, "age");
  EXPECT_EQ(config.slots[2].name, "genres");
  EXPECT_EQ(config.slots[2].separator, "|");
  EXPECT_EQ(config.slots[0].separator, "");
  EXPECT_EQ(config.slots[3].name, "empty");
  ASSERT_EQ(config.dense.size(), 1u);
  EXPECT_EQ(config.dense[0].name, "price");
}

TEST(DetectData, UnderstandsQuotedHeadersAndWindowsLines) {
  const DataConfig config = Detect("\"label\"\t\"a b\"\r\n1\tx\r\n");
  EXPECT_EQ(config.format, DataFormat::kTsv);
  ASSERT_EQ(config.slots.size(), 1u);
  EXPECT_EQ(config.slots[0].name, "a b");
}

TEST(DetectData, CountsLibffmFieldsOfTheWholeFile) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "1 0:3:1 2:77:0.5\n";
  text += "0 12:5:1\n-1 3:9:-2e-1 # 99:1:1\n";
  const DataConfig config = Detect(text);
  EXPECT_EQ(config.format, DataFormat::kLibffm);
  EXPECT_GE(config.fields, 13);
}

TEST(DetectData, RecognisesLibsvmWithQidAndComments) {
  EXPECT_EQ(Detect("# made by hand\n1 qid:4 1:0.5 7:1\n").format, DataFormat::kLibsvm);
  EXPECT_EQ(Detect("1\n0\n1 5:1\n").format, DataFormat::kLibsvm);
}

TEST(DetectData, TakesAnotherLabelColumn) {
  const DataConfig config = Detect("clicked,ad\n1,x\n", "clicked");
  EXPECT_EQ(config.label, "clicked");
  EXPECT_EQ(config.slots.size(), 1u);
}

TEST(DetectData, SaysWhatItFound) {
  EXPECT_THAT(DetectError(""), HasSubstr("f: the file is empty"));
  EXPECT_THAT(DetectError("clicked,ad\n1,x\n"),
              HasSubstr("no column \"label\" in the header, which has clicked, ad. Name the label "
                        "with --label"));
  EXPECT_THAT(DetectError("hello\n"),
              HasSubstr("cannot tell its format from its first line, \"hello\""));
}

TEST(DetectData, DoesNotTouchStandardInputUnlessItMust) {
  MemoryEnv env;
  EXPECT_EQ(DetectData(env, "-", DataFormat::kLibsvm, "label").format, DataFormat::kLibsvm);
  EXPECT_EQ(DetectData(env, "-", DataFormat::kCriteo, "label").dense.size(), 1u);
  EXPECT_THAT(ErrorOf([&] { DetectData(env, "-", std::nullopt, "label"); }),
              HasSubstr("standard input cannot be read twice"));
}

}  // namespace
}  // namespace terrace
