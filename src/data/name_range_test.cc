#include "data/name_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(NameRange, ANameStandsForItself) {
  EXPECT_THAT(ExpandNames("user_id", "data.slots"), ElementsAre("user_id"));
  EXPECT_THAT(ExpandNames("a.b", "data.slots"), ElementsAre("a.b"));
}

TEST(NameRange, ARangeStandsForAllItsNames) {
  EXPECT_THAT(ExpandNames("C9..C11", "data.slots"), ElementsAre("C9", "C10", "C11"));
  EXPECT_THAT(ExpandNames("7..8", "data.slots"), ElementsAre("7", "8"));
  EXPECT_THAT(ExpandNames("x2y1..x2y1", "data.slots"), ElementsAre("x2y1"));
}

TEST(NameRange, LeadingZerosSetTheWidth) {
  EXPECT_THAT(ExpandNames("f08..f11", "data.slots"), ElementsAre("f08", "f09", "f10", "f11"));
  EXPECT_THAT(ExpandNames("f0..f2", "data.slots"), ElementsAre("f0", "f1", "f2"));
}

TEST(NameRange, RefusesWhatLooksLikeARange) {
  for (const char* name : {"C26..C1", "C1..D5", "C..D", "C1..", "..C5", "C1..C", "C1...C3"})
    EXPECT_THAT(ErrorOf([&] { ExpandNames(name, "data.slots"); }),
                StartsWith(std::string("data.slots: found the range \"") + name + "\""));
  EXPECT_THAT(ErrorOf([] { ExpandNames("C1..C999999999", "data.dense"); }),
              HasSubstr("has 999999999 names, at most 100000"));
}

}  // namespace
}  // namespace terrace
