#include "data/bad_row.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"

namespace terrace {
namespace {

BadRow BadCell() {
  BadRow bad;
  bad.found = "12x";
  bad.expected = "a number";
  bad.column = 2;
  bad.column_name = "I2";
  return bad;
}

TEST(BadRow, MessageSaysWhereWhatAndWhatToDo) {
  EXPECT_EQ(BadRowMessage("ads.tsv", 1017, BadCell()),
            "ads.tsv:1017: column 3 (I2): found \"12x\", expected a number. Fix the row, or set "
            "data.on_bad_row = \"skip\" to leave bad rows out.");
}

TEST(BadRow, QuotesAreSafeToPrint) {
  EXPECT_EQ(QuoteForMessage(std::string_view("a\"b\\\t\0\x1b\xff", 8)),
            "\"a\\\"b\\\\\\t\\x00\\x1b\\xff\"");
  EXPECT_EQ(QuoteForMessage(std::string(100, 'x')),
            "\"" + std::string(40, 'x') + "\"... (100 bytes)");
  EXPECT_EQ(QuoteForMessage(""), "\"\"");
}

TEST(BadRow, PolicyThrowsOrCounts) {
  BadRowPolicy strict(OnBadRow::kError);
  EXPECT_EQ(CodeOf([&] { strict.Handle("f", 1, BadCell()); }), ErrorCode::kData);
  BadRowPolicy lenient(OnBadRow::kSkip);
  lenient.Handle("f", 1, BadCell());
  lenient.Handle("f", 2, BadCell());
  EXPECT_EQ(lenient.skipped_rows(), 2);
  EXPECT_EQ(strict.skipped_rows(), 0);
}

}  // namespace
}  // namespace terrace
