#include "data/data_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Printed(DataConfig config) {
  return PrintConfig([&](ConfigVisitor& v) { config.Visit(v); });
}

TEST(DataConfig, ReadsWhatUsersWrite) {
  const DataConfig config = DataConfigFrom(R"(
      format = "csv"
      train = "day_*.csv.gz"
      slots = ["user", {name = "tags", separator = "|", pooling = "mean", missing = "skip"},
               {name = "age", bucket = "boundaries", boundaries = [18, 30.5]}]
      dense = [{name = "price", log = true, clip = [-3, 3], missing = -1}]
      on_bad_row = "skip"
      max_line_bytes = "64KiB"
      shuffle = 1000
  )");
  EXPECT_EQ(config.format, DataFormat::kCsv);
  EXPECT_THAT(config.train, ElementsAre("day_*.csv.gz"));
  ASSERT_EQ(config.slots.size(), 3u);
  EXPECT_EQ(config.slots[0].name, "user");
  EXPECT_EQ(config.slots[0].table, "main");
  EXPECT_EQ(config.slots[1].pooling, Pooling::kMean);
  EXPECT_EQ(config.slots[1].missing, MissingKey::kSkip);
  EXPECT_EQ(config.slots[2].bucket, Bucketing::kBoundaries);
  EXPECT_THAT(config.slots[2].boundaries, ElementsAre(18, 30.5));
  EXPECT_TRUE(config.dense[0].log);
  EXPECT_EQ(config.dense[0].missing, -1);
  EXPECT_EQ(config.on_bad_row, OnBadRow::kSkip);
  EXPECT_EQ(config.max_line_bytes, 64 << 10);
}

TEST(DataConfig, IsPrintedAsItIsRead) {
  const DataConfig config = DataConfigFrom(R"(
      format = "libffm"
      fields = 3
      train = ["a", "-"]
      slots = ["field0..field1", {name = "x", table = "t"}]
      synthetic = {zipf = 1.25, features = 9223372036854775807}
  )");
  EXPECT_EQ(Printed(DataConfigFrom(Printed(config))), Printed(config));
  EXPECT_THAT(Printed(config), HasSubstr("9223372036854775807"));
}

TEST(DataConfig, DefaultsAreWithinTheirRanges) {
  EXPECT_EQ(Printed(DataConfigFrom(Printed(DataConfig()))), Printed(DataConfig()));
}

TEST(DataConfig, RefusesWhatIsOutOfRange) {
  for (const char* toml :
       {"threads = 0", "shuffle = -1", "standardise_rows = 0", "format = 'xml'",
        "synthetic = {label_rate = 1}", "synthetic = {one_off = 1.5}",
        "synthetic = {one_off = -0.1}", "synthetic = {drift = -1}", "slots = [{nam = 'x'}]"})
    EXPECT_EQ(CodeOf([&] { DataConfigFrom(toml); }), ErrorCode::kUsage) << toml;
}

}  // namespace
}  // namespace terrace
