#include "data/number.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdlib>
#include <string>

namespace terrace {
namespace {

// The text with the padding that parsed text has, filled with digits, which must not be read.
std::string Padded(const std::string& text) { return text + std::string(kTextPadding, '7'); }

bool Digits(const std::string& text, uint32_t* value) {
  return ParseUpTo8Digits(Padded(text).data(), text.size(), value);
}

TEST(Number, ReadsUpTo8Digits) {
  uint32_t value = 0;
  for (const char* text :
       {"0", "7", "10", "999", "1024", "65536", "123456", "7654321", "99999999"}) {
    ASSERT_TRUE(Digits(text, &value)) << text;
    EXPECT_EQ(value, std::stoul(text));
  }
  for (const char* text : {"", "123456789", "-1", "1.5", "12x", "x", " 1", "1 ", "\xff", "/", ":"})
    EXPECT_FALSE(Digits(text, &value)) << text;
}

TEST(Number, ReadsAnyDigitsAsOthersDo) {
  EXPECT_TRUE(rc::check([](uint32_t number) {
    number %= 100'000'000;
    uint32_t value = 0;
    RC_ASSERT(Digits(std::to_string(number), &value));
    RC_ASSERT(value == number);
  }));
}

TEST(Number, ParsesEveryDoubleToItsNearestValue) {
  EXPECT_TRUE(rc::check([](int64_t mantissa, int digits) {
    const int exponent = *rc::gen::inRange(-330, 285);
    const std::string texts[] = {
        fmt::format("{}e{}", mantissa, exponent), fmt::format("{}", mantissa),
        fmt::format("{:.{}f}", static_cast<double>(mantissa) / 1e12, std::abs(digits % 20)),
        fmt::format("+{}.{}", std::abs(mantissa % 100000), std::abs(digits))};
    for (const std::string& text : texts) {
      double value = 0;
      RC_ASSERT(ParseDouble(text, &value));
      RC_ASSERT(value == std::strtod(text.c_str(), nullptr));
    }
  }));
}

TEST(Number, AcceptsUsualForms) {
  const std::pair<const char*, double> cases[] = {
      {"0", 0},
      {"-0", 0},
      {"+1", 1},
      {".5", 0.5},
      {"5.", 5},
      {"-12.25", -12.25},
      {"1e3", 1e3},
      {"2E-3", 2e-3},
      {"1e-400", 0},
      {"9007199254740993", 9007199254740992.0},
      {"123456789012345678901234567890", 1.2345678901234568e29}};
  for (const auto& [text, expected] : cases) {
    double value = -1;
    EXPECT_TRUE(ParseDouble(text, &value)) << text;
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(Number, RefusesEverythingElse) {
  for (const char* text :
       {"",   "-",  "+",    ".",   "+-1", "--1", "1.2.3", "12x",  "x12",      "1e",   "e5",
        " 1", "1 ", "0x10", "1,5", "nan", "NaN", "inf",   "-inf", "infinity", "1e400"}) {
    double value;
    EXPECT_FALSE(ParseDouble(text, &value)) << text;
  }
}

TEST(Number, SaysWhetherItIsANumberAtAll) {
  EXPECT_STREQ(ExpectedNumber("12x"), "a number");
  EXPECT_STREQ(ExpectedNumber(""), "a number");
  EXPECT_STREQ(ExpectedNumber("+"), "a number");
  EXPECT_STREQ(ExpectedNumber("nan"), "a finite number");
  EXPECT_STREQ(ExpectedNumber("-inf"), "a finite number");
  EXPECT_STREQ(ExpectedNumber("1e400"), "a finite number");
}

TEST(Number, IntegersAreWholeAndInRange) {
  int64_t i = 0;
  EXPECT_TRUE(ParseInt64("-9223372036854775808", &i));
  EXPECT_EQ(i, INT64_MIN);
  for (const char* text : {"", "9223372036854775808", "1.0", "+1", "1x"})
    EXPECT_FALSE(ParseInt64(text, &i)) << text;
  uint64_t u = 0;
  EXPECT_TRUE(ParseUint64("18446744073709551615", &u));
  EXPECT_EQ(u, UINT64_MAX);
  for (const char* text : {"", "18446744073709551616", "-1", "1.0"})
    EXPECT_FALSE(ParseUint64(text, &u)) << text;
}

}  // namespace
}  // namespace terrace
