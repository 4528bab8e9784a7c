#include "table/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace terrace {
namespace {

TableSchema Make(TableConfig config, bool linear, const std::string& name = "t",
                 uint64_t seed = 1) {
  return TableSchema::Make(name, config, linear, seed);
}

std::vector<float> Row(const TableSchema& schema, uint64_t key) {
  std::vector<float> row(schema.layout.payload_bytes() / sizeof(float), NAN);
  InitRow(schema, key, reinterpret_cast<std::byte*>(row.data()));
  return row;
}

TEST(RowLayout, HoldsWeightsThenStateBehindTheKeyInWholeEightBytes) {
  struct Case {
    RowOptimizer optimizer;
    int64_t dim;
    bool linear;
    int state;
    int64_t stride;
  };
  const Case cases[] = {
      {RowOptimizer::kSgd, 8, false, 0, 40},       {RowOptimizer::kSgd, 8, true, 0, 48},
      {RowOptimizer::kAdaGrad, 8, true, 9, 80},    {RowOptimizer::kAdaGrad, 0, true, 1, 16},
      {RowOptimizer::kRowAdaGrad, 8, true, 2, 56}, {RowOptimizer::kRowAdaGrad, 16, false, 1, 80},
      {RowOptimizer::kRowAdaGrad, 0, true, 1, 16}, {RowOptimizer::kAdam, 16, true, 34, 216},
      {RowOptimizer::kFtrl, 0, true, 2, 24},       {RowOptimizer::kFtrl, 512, true, 1026, 6168},
  };
  for (const Case& c : cases) {
    TableConfig config;
    config.optimizer = c.optimizer;
    config.dim = c.dim;
    const RowLayout layout = Make(config, c.linear).layout;
    EXPECT_EQ(layout.dim, c.dim);
    EXPECT_EQ(layout.linear, c.linear ? 1 : 0);
    EXPECT_EQ(layout.weights, c.dim + (c.linear ? 1 : 0));
    EXPECT_EQ(layout.state, c.state) << c.dim;
    EXPECT_EQ(layout.stride, c.stride) << c.dim;
  }
}

TEST(TableSchema, RefusesRowsWithoutWeights) {
  TableConfig config;
  config.dim = 0;
  EXPECT_THAT([&] { Make(config, false, "user"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("tables.user.dim is 0")));
  EXPECT_NO_THROW(Make(config, true));
}

TEST(TableConfig, IsReadFromToml) {
  TableConfig config;
  const ConfigFile file = ConfigFile::Parse(
      "dim = 32\noptimizer = \"rowadagrad\"\nlr = 0.5\nl2 = 0.25\nclip_norm = 2.0\n"
      "init = \"normal\"\ninit_scale = 0.125\nftrl_l1 = 3.0\n",
      "test");
  file.Read([&](ConfigVisitor& v) { config.Visit(v); });
  EXPECT_EQ(config.dim, 32);
  EXPECT_EQ(config.optimizer, RowOptimizer::kRowAdaGrad);
  EXPECT_EQ(config.lr, 0.5);
  EXPECT_EQ(config.l2, 0.25);
  EXPECT_EQ(config.clip_norm, 2);
  EXPECT_EQ(config.init, RowInit::kNormal);
  EXPECT_EQ(config.init_scale, 0.125);
  EXPECT_EQ(config.ftrl_l1, 3);
}

TEST(TableConfig, RefusesNumbersThatBreakUpdates) {
  for (const char* text : {"dim = 513", "dim = -1", "eps = 0.0", "beta1 = 1.0", "lr = 0.0"}) {
    TableConfig config;
    const ConfigFile file = ConfigFile::Parse(text, "test");
    EXPECT_THROW(file.Read([&](ConfigVisitor& v) { config.Visit(v); }), Error) << text;
  }
}

TEST(InitRow, DependsOnSeedTableAndKeyOnly) {
  TableConfig config;
  config.dim = 7;
  const std::vector<float> row = Row(Make(config, true), 5);
  EXPECT_EQ(Row(Make(config, true), 5), row);
  EXPECT_NE(Row(Make(config, true), 6), row);
  EXPECT_NE(Row(Make(config, true, "u"), 5), row);
  EXPECT_NE(Row(Make(config, true, "t", 2), 5), row);
}

// Golden: a model trained by one version goes on bit-equal under the next.
TEST(InitRow, GivesTheSameNumbersForEver) {
  TableConfig config;
  config.dim = 3;
  config.optimizer = RowOptimizer::kSgd;
  config.init_scale = 1;
  EXPECT_EQ(Row(Make(config, false), 5),
            (std::vector<float>{0x1.d60288p-1f, 0x1.92fce8p-2f, 0x1.f0134cp-1f}));
  config.init = RowInit::kNormal;
  EXPECT_EQ(Row(Make(config, false), 5),
            (std::vector<float>{0x1.a246p-1f, 0x1.8f38p-2f, 0x1.8e3p-3f}));
}

TEST(InitRow, FillsTheWholeRow) {
  for (RowOptimizer optimizer :
       {RowOptimizer::kSgd, RowOptimizer::kAdaGrad, RowOptimizer::kRowAdaGrad, RowOptimizer::kAdam,
        RowOptimizer::kFtrl})
    for (RowInit init : {RowInit::kZero, RowInit::kUniform, RowInit::kNormal})
      for (int64_t dim : {0, 1, 2, 9, 512}) {
        TableConfig config;
        config.optimizer = optimizer;
        config.init = init;
        config.dim = dim;
        config.initial_accumulator = 0.5;
        const TableSchema schema = Make(config, true);
        const std::vector<float> row = Row(schema, 3);
        for (float x : row) ASSERT_TRUE(std::isfinite(x));
        ASSERT_EQ(row[dim], 0) << "the linear weight";
        const int used = schema.layout.weights + schema.layout.state;
        for (size_t i = used; i < row.size(); ++i) ASSERT_EQ(row[i], 0) << "padding";
        const bool adagrad =
            optimizer == RowOptimizer::kAdaGrad || optimizer == RowOptimizer::kRowAdaGrad;
        if (optimizer == RowOptimizer::kFtrl) continue;
        for (int i = schema.layout.weights; i < used; ++i) ASSERT_EQ(row[i], adagrad ? 0.5f : 0);
      }
}

// Mean, standard deviation and largest size of many weights.
struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
  double beyond_two = 0;  // share beyond two standard deviations
};
Moments MomentsOf(RowInit init) {
  TableConfig config;
  config.dim = 33;
  config.init = init;
  config.init_scale = 0.5;
  const TableSchema schema = Make(config, false);
  Moments m;
  double squares = 0;
  constexpr int kKeys = 4000;
  const double n = kKeys * 33.0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const std::vector<float> row = Row(schema, key);
    for (int i = 0; i < 33; ++i) {
      m.mean += row[i] / n;
      squares += double{row[i]} * row[i] / n;
      m.largest = std::max<double>(m.largest, std::abs(row[i]));
      m.beyond_two += (std::abs(row[i]) > 1.0) / n;
    }
  }
  m.deviation = std::sqrt(squares - m.mean * m.mean);
  return m;
}

TEST(InitRow, UniformFillsItsRange) {
  const Moments m = MomentsOf(RowInit::kUniform);
  EXPECT_NEAR(m.mean, 0, 0.004);
  EXPECT_NEAR(m.deviation, 0.5 / std::sqrt(3.0), 0.004);
  EXPECT_LE(m.largest, 0.5);
  EXPECT_GT(m.largest, 0.4999);
}

TEST(InitRow, NormalHasTheScaleAsStandardDeviation) {
  const Moments m = MomentsOf(RowInit::kNormal);
  EXPECT_NEAR(m.mean, 0, 0.006);
  EXPECT_NEAR(m.deviation, 0.5, 0.006);
  EXPECT_NEAR(m.beyond_two, 0.0455, 0.003);
  EXPECT_GT(m.largest, 1.75);
}

}  // namespace
}  // namespace terrace
