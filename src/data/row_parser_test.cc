// Every way in which a row can be bad, for all text formats.
#include "data/row_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kCsv =
    "format = 'csv'\nslots = ['a', {name='b', bucket='log', separator='|'}]\ndense = ['x']\n"
    "weight = 'w'\ntimestamp = 't'\nmax_line_bytes = 100\n";
constexpr const char* kHeader = "label,a,b,x,w,t\n";
constexpr const char* kGoodRow = "1,A,3,0.5,1,10\n";
constexpr const char* kAdvice =
    " Fix the row, or set data.on_bad_row = \"skip\" to leave bad rows out.";

MemoryEnv EnvWith(const std::string& text) {
  MemoryEnv env;
  env.files["ads.txt"] = text;
  return env;
}
DataConfig ConfigWith(const std::string& toml) {
  return DataConfigFrom("train = 'ads.txt'\n" + toml);
}
std::string ErrorOfReading(const std::string& toml, const std::string& text) {
  MemoryEnv env = EnvWith(text);
  return ErrorOf([&] { ReadAll(env, ConfigWith(toml)); });
}

int64_t CountSkipped(MemoryEnv& env, const DataConfig& config) {
  const auto stream = OpenData(env, config, FeatureSpec::Resolve(config), {});
  Batch batch;
  while (stream->Next(10, &batch)) {
  }
  return stream->skipped_rows();
}

struct BadLine {
  std::string line;
  const char* message;  // between place and advice
};

class BadCsvLine : public ::testing::TestWithParam<BadLine> {};

TEST_P(BadCsvLine, IsNamedWithItsPlace) {
  const std::string text = std::string(kHeader) + kGoodRow + GetParam().line + "\n" + kGoodRow;
  EXPECT_EQ(ErrorOfReading(kCsv, text), std::string("ads.txt:3: ") + GetParam().message + kAdvice);
}

TEST_P(BadCsvLine, IsLeftOutWithoutATraceIfToldSo) {
  const std::string good = std::string(kHeader) + kGoodRow;
  MemoryEnv env = EnvWith(good + GetParam().line + "\r\n" + kGoodRow + GetParam().line);
  MemoryEnv clean = EnvWith(good + kGoodRow);
  const DataConfig config = ConfigWith(std::string(kCsv) + "on_bad_row = 'skip'");
  EXPECT_TRUE(SameExamples(ReadAll(env, config), ReadAll(clean, config)));
  EXPECT_EQ(CountSkipped(env, config), 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadCsvLine,
    ::testing::Values(
        BadLine{",A,3,0.5,1,10", "column 1 (label): found \"\", expected a label in [0, 1]."},
        BadLine{"2,A,3,0.5,1,10", "column 1 (label): found \"2\", expected a label in [0, 1]."},
        BadLine{"-1,A,3,0.5,1,10", "column 1 (label): found \"-1\", expected a label in [0, 1]."},
        BadLine{"nan,A,3,0.5,1,10", "column 1 (label): found \"nan\", expected a label in [0, 1]."},
        BadLine{"yes,A,3,0.5,1,10", "column 1 (label): found \"yes\", expected a label in [0, 1]."},
        BadLine{"1,A,3,12x,1,10", "column 4 (x): found \"12x\", expected a number."},
        BadLine{"1,A,3,\xff\x01,1,10", "column 4 (x): found \"\\xff\\x01\", expected a number."},
        BadLine{"1,A,3,nan,1,10", "column 4 (x): found \"nan\", expected a finite number."},
        BadLine{"1,A,3,-inf,1,10", "column 4 (x): found \"-inf\", expected a finite number."},
        BadLine{"1,A,3,1e39,1,10",
                "column 4 (x): found \"1e39\", expected a number that a float can hold."},
        BadLine{"1,A,3,\"1,5\",1,10", "column 4 (x): found \"1,5\", expected a number."},
        BadLine{"1,A,4|x,0.5,1,10", "column 3 (b): found \"x\", expected a number."},
        BadLine{"1,A,4|inf,0.5,1,10", "column 3 (b): found \"inf\", expected a finite number."},
        BadLine{"1,A,3,0.5,,10", "column 5 (w): found \"\", expected a finite weight >= 0."},
        BadLine{"1,A,3,0.5,-1,10", "column 5 (w): found \"-1\", expected a finite weight >= 0."},
        BadLine{"1,A,3,0.5,1e39,10",
                "column 5 (w): found \"1e39\", expected a finite weight >= 0."},
        BadLine{"1,A,3,0.5,1,1.5", "column 6 (t): found \"1.5\", expected a 64-bit integer."},
        BadLine{"1,A,3,0.5,1,", "column 6 (t): found \"\", expected a 64-bit integer."},
        BadLine{"1,A,3,0.5,1", "found 5 columns, expected 6."},
        BadLine{"1,A,3,0.5,1,10,", "found 7 columns, expected 6."},
        BadLine{"junk", "found 1 column, expected 6."},
        BadLine{"1,\"A,3,0.5,1,10",
                "column 2 (a): found \"\\\"A,3,0.5,1,10\", expected a closing quote on the same "
                "line."},
        BadLine{"1,\"A\"B,3,0.5,1,10",
                "column 2 (a): found \"\\\"A\\\"B,3,0.5,1,10\", expected the next column or the "
                "line's end after a closing quote."},
        BadLine{std::string("1,A\0B,3,0.5,1,10", 16),
                "found a NUL byte at byte 4 of the line, expected text."},
        BadLine{"1," + std::string(100, 'A') + ",3,0.5,1,10",
                "found a longer line, expected at most data.max_line_bytes = 100 bytes."}));

class BadSparseLine : public ::testing::TestWithParam<BadLine> {};

TEST_P(BadSparseLine, IsNamedWithItsPlaceOrLeftOut) {
  const char* toml = "format = 'libffm'\nfields = 2\nmax_line_bytes = 50\n";
  const std::string text = "1 0:1:1\n" + GetParam().line + "\n0 1:2:1\n";
  EXPECT_EQ(ErrorOfReading(toml, text), std::string("ads.txt:2: ") + GetParam().message + kAdvice);
  MemoryEnv env = EnvWith(text);
  MemoryEnv clean = EnvWith("1 0:1:1\n0 1:2:1\n");
  const DataConfig config = ConfigWith(std::string(toml) + "on_bad_row = 'skip'");
  EXPECT_TRUE(SameExamples(ReadAll(env, config), ReadAll(clean, config)));
}

#define TERRACE_FFM "expected field:index:value with a field below 2 and a finite value."
INSTANTIATE_TEST_SUITE_P(
    All, BadSparseLine,
    ::testing::Values(BadLine{"2 0:1:1", "found \"2\", expected a label in [0, 1], or -1."},
                      BadLine{"0:1:1", "found \"0:1:1\", expected a label in [0, 1], or -1."},
                      BadLine{"1 0:1:1 0:1", "feature 2: found \"0:1\", " TERRACE_FFM},
                      BadLine{"1 2:1:1", "feature 1: found \"2:1:1\", " TERRACE_FFM},
                      BadLine{"1 -1:1:1", "feature 1: found \"-1:1:1\", " TERRACE_FFM},
                      BadLine{"1 0:x:1", "feature 1: found \"0:x:1\", " TERRACE_FFM},
                      BadLine{"1 0:1:", "feature 1: found \"0:1:\", " TERRACE_FFM},
                      BadLine{"1 0:1:nan", "feature 1: found \"0:1:nan\", " TERRACE_FFM},
                      BadLine{"1 0:1:1e39", "feature 1: found \"0:1:1e39\", " TERRACE_FFM},
                      BadLine{"1 0:18446744073709551616:1",
                              "feature 1: found \"0:18446744073709551616:1\", " TERRACE_FFM},
                      BadLine{
                          "1 0:1:1 # " + std::string(50, 'x'),
                          "found a longer line, expected at most data.max_line_bytes = 50 bytes."},
                      BadLine{std::string("1 0:1:1\0", 8),
                              "found a NUL byte at byte 8 of the line, expected text."}));
#undef TERRACE_FFM

TEST(RowParser, LibsvmNamesABadFeatureAndQid) {
  EXPECT_EQ(ErrorOfReading("format = 'libsvm'", "1 3:x"),
            std::string("ads.txt:1: feature 1: found \"3:x\", expected index:value with a finite "
                        "value.") +
                kAdvice);
  EXPECT_THAT(ErrorOfReading("format = 'libsvm'\ngroup = 'qid'", "1 qid:1 1:1\n1 1:1\n"),
              StartsWith("ads.txt:2: found no qid, expected qid:N after the label"));
  EXPECT_THAT(ErrorOfReading("format = 'libsvm'", "1 qid:a 1:1\n"),
              StartsWith("ads.txt:1: found \"qid:a\", expected qid: and an integer"));
}

TEST(RowParser, CriteoNamesItsColumns) {
  std::string line = "0\t1\t12x";
  for (int i = 3; i < 40; ++i) line += "\t";
  EXPECT_EQ(ErrorOfReading("", line + "\n"),
            std::string("ads.txt:1: column 3 (I2): found \"12x\", expected a number.") + kAdvice);
}

TEST(RowParser, GoodRowsAreTheSameWhateverBadOnesStandBetween) {
  EXPECT_TRUE(rc::check([] {
    std::string mixed = kHeader;
    std::string good = kHeader;
    int64_t bad_lines = 0;
    for (const int kind : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6))) {
      const std::string bad[] = {"1,A,x", "1,A,1|2|3|x,1,1,1", "0,B,7,0,-1,3", "?,?,?,?,?,?"};
      const std::string line =
          kind < 4 ? bad[kind] : "0,\"C\",5|9," + std::to_string(kind) + ",2,7";
      mixed += line + "\n";
      if (kind >= 4) good += line + "\n";
      bad_lines += kind < 4;
    }
    MemoryEnv env = EnvWith(mixed);
    MemoryEnv clean = EnvWith(good);
    const DataConfig config = ConfigWith(std::string(kCsv) + "on_bad_row = 'skip'");
    RC_ASSERT(SameExamples(ReadAll(env, config), ReadAll(clean, config)));
    RC_ASSERT(CountSkipped(env, config) == bad_lines);
  }));
}

TEST(RowParser, HeaderErrorsListWhatIsThere) {
  const char* toml = "format = 'csv'\nslots = ['user_id', 'ad_id']";
  EXPECT_EQ(ErrorOfReading(toml, "label,userid,ad_id\n1,2,3\n"),
            "ads.txt:1: the header has no column \"user_id\", needed by slot \"user_id\" (nearest: "
            "\"userid\"). Columns found: label, userid, ad_id. Correct the config, or the header.");
  EXPECT_THAT(ErrorOfReading(toml, "click,user_id,ad_id\n"),
              HasSubstr("no column \"label\", needed by data.label"));
  EXPECT_THAT(ErrorOfReading(toml, "label,ad_id,user_id,ad_id\n"),
              HasSubstr("the header has 2 columns \"ad_id\", needed by slot \"ad_id\""));
  EXPECT_THAT(ErrorOfReading(toml, "label,\"ad_id,user_id\n"), HasSubstr("a closing quote"));
  EXPECT_THAT(ErrorOfReading(std::string(toml) + "\nmax_line_bytes = 5", "label,ad_id,user_id\n"),
              HasSubstr("ads.txt:1: the header has a longer line"));
  // A header is not a row that may be left out.
  EXPECT_THAT(ErrorOfReading(std::string(toml) + "\non_bad_row = 'skip'", "label,x\n1,2\n"),
              HasSubstr("the header has no column"));
}

}  // namespace
}  // namespace terrace
