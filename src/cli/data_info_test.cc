#include "cli/data_info.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "cli/data_gen.h"
#include "cli/data_info_print.h"
#include "data/data_testing.h"
#include "data/memory_env.h"

namespace terrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::atomic<bool> kGoOn{false};

std::string Describe(const std::string& text, InfoOptions options = {}) {
  MemoryEnv env;
  env.files["f"] = text;
  if (options.files.empty()) options.files = {"f"};
  return DescribeData(env, options, kGoOn);
}

TEST(DataInfo, ShowsASmallCsvWhole) {
  EXPECT_EQ(Describe("label,ad,genres,price\n"
                     "1,x,Action|Comedy,1.5\n"
                     "0,x,Action,\n"
                     "0,y,,-0.5\n"
                     "0,,Comedy,2\n"),
            "f, 78 B\n"
            "  format         csv\n"
            "  examples       4\n"
            "  label rate     0.2500\n"
            "  keys           7, 1.75 an example\n"
            "  distinct keys  4\n"
            "\n"
            "slot    keys  distinct  an example  missing  top value  zipf  frequency by rank\n"
            "-------------------------------------------------------------------------------\n"
            "ad         3         2        0.75     25 %       67 %     -  █▁\n"
            "genres     4         2        1.00     25 %       50 %     -  ██\n"
            "\n"
            "dense   min  mean   std  max  missing\n"
            "-------------------------------------\n"
            "price  -0.5     1  1.08    2     25 %\n"
            "\n"
            "Skew of all keys\n"
            "\n"
            "rank  share up to it  occurs  log scale\n"
            "----------------------------------------------------------------------\n"
            "   1            29 %       2  ████████████████████████████████████████\n"
            "   3            86 %       2  ████████████████████████████████████████\n"
            "   4           100 %       1  █████████████████████████▎\n");
}

TEST(DataInfo, FindsTheGeneratorsNumbersAgain) {
  MemoryEnv env;
  GenOptions gen;
  gen.path = "clicks.csv.gz";
  gen.format = DataFormat::kCsv;
  gen.compression = Compression::kGzip;
  gen.examples = 20'000;
  gen.synthetic.slots = 2;
  gen.synthetic.features = 50;
  gen.synthetic.values_per_slot = 3;
  gen.synthetic.dense = 1;
  gen.synthetic.zipf = 1.5;
  const GenReport report = GenerateFile(env, gen, kGoOn);
  InfoOptions options;
  options.files = {"clicks.csv.gz"};
  const std::string info = DescribeData(env, options, kGoOn);
  EXPECT_THAT(info, HasSubstr("examples       20,000\n"));
  EXPECT_THAT(info, HasSubstr(fmt::format("label rate     {:.4f}\n", report.label_rate)));
  EXPECT_THAT(info, HasSubstr("distinct keys  100\n"));
  // slot, keys, distinct, an example, missing, top value, zipf
  EXPECT_THAT(info,
              ContainsRegex("s0 +[56][0-9],[0-9]+ +50 +[23]\\.[0-9]+ +0 % +4[0-9] % +1\\.[45]"));
  EXPECT_THAT(info,
              ContainsRegex("d0 +-3\\.[0-9]+ +-?0\\.0[0-9]+ +[01]\\.[09][0-9]* +3\\.[0-9]+ +0 %"));
  EXPECT_THAT(info, ContainsRegex("Zipf exponent 1\\.[345]"));
}

TEST(DataInfo, ShowsCriteoCountsAsTheyAreInTheFile) {
  std::string row = "1\t100\t";
  for (int i = 2; i < 39; ++i) row += "\t";
  row += "abc\n";
  const std::string info = Describe(row);
  EXPECT_THAT(info, HasSubstr("format         criteo\n"));
  EXPECT_THAT(info, ContainsRegex("I1 +100 +100 +0 +100 +0 %"));
  EXPECT_THAT(info, ContainsRegex("I2 +- +- +- +- +100 %"));
  EXPECT_THAT(info, ContainsRegex("C1 +0 +0 +0.00 +100 % +0 %"));
  EXPECT_THAT(info, ContainsRegex("C26 +1 +1 +1.00 +0 % +100 %"));
}

TEST(DataInfo, CountsBadRowsAndShowsTheFirst) {
  const std::string info = Describe("label,a\n1,x\n2,y\n0,z,z\n0,w\n");
  EXPECT_THAT(info, HasSubstr("examples       2\n"));
  EXPECT_THAT(info,
              HasSubstr("bad rows       2 left out; the first one:\n    f:3: column 1 (label)"));
  EXPECT_THAT(Describe("label,a\n1,x\n"), Not(HasSubstr("bad rows")));
}

TEST(DataInfo, RefusesWhatHasNoReadableRow) {
  EXPECT_THAT(ErrorOf([] { Describe("label,a\nno,x\n"); }),
              HasSubstr("not one row could be read. The first one: f:2: column 1 (label)"));
  EXPECT_THAT(ErrorOf([] { Describe("label,a\n"); }), HasSubstr("there are no examples"));
  MemoryEnv env;
  EXPECT_THAT(ErrorOf([&] { DescribeData(env, InfoOptions{}, kGoOn); }),
              HasSubstr("no file given"));
  InfoOptions options;
  options.files = {"absent*.csv"};
  EXPECT_THAT(ErrorOf([&] { DescribeData(env, options, kGoOn); }),
              HasSubstr("no file matches \"absent*.csv\""));
}

TEST(DataInfo, JoinsSeveralFilesAndStopsAfterSoManyExamples) {
  MemoryEnv env;
  env.files["day_1.csv"] = "label,a\n1,x\n0,y\n";
  env.files["day_2.csv"] = "label,a\n1,z\n";
  InfoOptions options;
  options.files = {"day_*.csv"};
  const std::string info = DescribeData(env, options, kGoOn);
  EXPECT_THAT(info, HasSubstr("day_1.csv, 16 B\nday_2.csv, 12 B\n"));
  EXPECT_THAT(info, HasSubstr("examples       3\n"));
  options.max_examples = 2;
  EXPECT_THAT(DescribeData(env, options, kGoOn), HasSubstr("examples       2\n"));
}

TEST(DataInfo, StopsWhenAsked) {
  const std::atomic<bool> stop{true};
  MemoryEnv env;
  env.files["f"] = "label,a\n1,x\n";
  InfoOptions options;
  options.files = {"f"};
  EXPECT_THAT(ErrorOf([&] { DescribeData(env, options, stop); }),
              HasSubstr("interrupted after 1 examples"));
}

TEST(DataInfo, UsesTheDataSectionOfAConfig) {
  const std::string path = ::testing::TempDir() + "/data_info_config.toml";
  WriteFileAtomically(PosixEnv(), path,
                      "[data]\nformat = \"csv\"\nlabel = \"y\"\ntrain = \"f\"\n"
                      "slots = [{name = \"bucket\", column = \"x\", bucket = \"log\"}]\n"
                      "dense = [{name = \"x\", log = true, clip = [0, 1]}]\n"
                      "[tables.main]\ndim = 4\n");
  MemoryEnv env;
  env.files["f"] = "y,x,other\n1,1000,q\n0,1001,r\n";
  InfoOptions options;
  options.config = path;
  const std::string info = DescribeData(env, options, kGoOn);
  std::filesystem::remove(path);
  EXPECT_THAT(info, HasSubstr("bucket     2         1"));
  EXPECT_THAT(info, ContainsRegex("x +1000 +1000 +0.5 +1001 +0 %"));
  EXPECT_THAT(info, Not(HasSubstr("other")));
}

TEST(FitZipfExponent, FindsTheExponentOfAPowerLaw) {
  for (const double s : {0.5, 1.05, 2.0}) {
    std::vector<int64_t> counts;
    for (int rank = 1; rank <= 10'000; ++rank)
      counts.push_back(static_cast<int64_t>(1e6 * std::pow(rank, -s)));
    EXPECT_NEAR(FitZipfExponent(counts), s, 0.02);
  }
  EXPECT_NEAR(FitZipfExponent(std::vector<int64_t>(100, 50)), 0, 1e-9);
  EXPECT_TRUE(std::isnan(FitZipfExponent({})));
  EXPECT_TRUE(std::isnan(FitZipfExponent(std::vector<int64_t>(1000, 2))));
}

TEST(RankSparkline, FallsAsALineForAPowerLawAndStaysForEvenCounts) {
  std::vector<int64_t> counts;
  for (int rank = 1; rank <= 128; ++rank) counts.push_back(128 / rank);
  EXPECT_EQ(RankSparkline(counts, 8), "█▇▆▅▄▃▂▁");
  EXPECT_EQ(RankSparkline(std::vector<int64_t>(100, 9), 4), "████");
  EXPECT_EQ(RankSparkline({5}, 8), "█");
  EXPECT_EQ(RankSparkline({1}, 8), "█");
  EXPECT_EQ(RankSparkline({}, 8), "");
}

}  // namespace
}  // namespace terrace
