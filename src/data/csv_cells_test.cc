#include "data/csv_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace terrace {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Split(std::string_view line) {
  CsvCells cells;
  BadRow bad;
  if (!cells.Split(line, ',', &bad)) return {"bad column " + std::to_string(bad.column)};
  std::vector<std::string> out;
  for (size_t i = 0; i < cells.size(); ++i) out.emplace_back(cells[i]);
  return out;
}

TEST(CsvCells, SplitsAtDelimitersOutsideQuotes) {
  EXPECT_THAT(Split("a,\"b,c\",d"), ElementsAre("a", "b,c", "d"));
  EXPECT_THAT(Split("\"\",x,"), ElementsAre("", "x", ""));
  EXPECT_THAT(Split(""), ElementsAre(""));
}

TEST(CsvCells, DoubledQuotesAreOne) {
  EXPECT_THAT(Split("\"say \"\"hi\"\"\",\"\"\"\""), ElementsAre("say \"hi\"", "\""));
}

TEST(CsvCells, AQuoteInsideAPlainCellIsText) {
  EXPECT_THAT(Split("5\" disk,x"), ElementsAre("5\" disk", "x"));
}

TEST(CsvCells, RefusesQuotesThatDoNotEnd) {
  CsvCells cells;
  BadRow bad;
  EXPECT_FALSE(cells.Split("a,\"b,c", ',', &bad));
  EXPECT_EQ(bad.column, 1);
  EXPECT_EQ(bad.found, "\"b,c");
  EXPECT_EQ(bad.expected, "a closing quote on the same line");
  EXPECT_FALSE(cells.Split("\"a\"b,c", ',', &bad));
  EXPECT_EQ(bad.column, 0);
  EXPECT_EQ(bad.expected, "the next column or the line's end after a closing quote");
}

TEST(CsvCells, ReadsBackWhatWasQuoted) {
  EXPECT_TRUE(rc::check([] {
    const auto cell = rc::gen::container<std::string>(rc::gen::element('a', '"', ',', '\t', ' '));
    auto cells = *rc::gen::container<std::vector<std::string>>(cell);
    cells.push_back("end");
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      line += i == 0 ? "\"" : ",\"";
      for (const char c : cells[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
      line += '"';
    }
    RC_ASSERT(Split(line) == cells);
  }));
}

}  // namespace
}  // namespace terrace
