#include "base/text.h"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(Text, GroupsDigitsByThousands) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
  EXPECT_EQ(WithCommas(-100), "-100");
  EXPECT_EQ(WithCommas(-12345), "-12,345");
}

TEST(Text, ShortNumbersKeepThreeDigits) {
  EXPECT_EQ(ShortCount(7), "7");
  EXPECT_EQ(ShortCount(0.25), "0.25");
  EXPECT_EQ(ShortCount(1234567), "1.23 M");
  EXPECT_EQ(ShortCount(999999), "1.00 M");
  EXPECT_EQ(ShortBytes(512), "512 B");
  EXPECT_EQ(ShortBytes(1572864), "1.50 MiB");
  EXPECT_EQ(ShortSeconds(0.0123), "12.3 ms");
  EXPECT_EQ(ShortSeconds(93), "1m33s");
  EXPECT_EQ(ShortSeconds(7260), "2h01m");
}

TEST(Text, TableAlignsNumbersRightAndTextLeft) {
  TextTable table({"name", "rows"});
  table.AddRow({"a", "5"});
  table.AddRow({"longer", "1234"});
  EXPECT_EQ(table.Render(1),
            " name    rows\n"
            " ------------\n"
            " a          5\n"
            " longer  1234\n");
}

TEST(Text, WidthCountsCharactersNotBytes) { EXPECT_EQ(DisplayWidth("▁▂█x"), 4u); }

}  // namespace
}  // namespace terrace
