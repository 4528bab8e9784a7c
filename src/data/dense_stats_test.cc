#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

FeatureSpec Measured(MemoryEnv& env, const DataConfig& config) {
  FeatureSpec spec = FeatureSpec::Resolve(config);
  MeasureDenseColumns(env, config, &spec);
  return spec;
}

TEST(DenseStats, MeasuresMeanAndDeviationOfCellsThatAreThere) {
  MemoryEnv env;
  env.files["f"] = "label,a,x,y,z\n1,A,1,7,5\n0,A,,7,5\n1,A,5,7,6\n";
  const FeatureSpec spec =
      Measured(env, DataConfigFrom("format = 'csv'\ntrain = 'f'\nslots = ['a']\ndense = "
                                   "[{name='x', standardise=true, missing=100, clip=[-0.5, 0.5]}, "
                                   "{name='y', standardise=true}, 'z']"));
  EXPECT_EQ(spec.dense[0].mean, 3);
  EXPECT_EQ(spec.dense[0].inv_std, 0.5);
  EXPECT_EQ(spec.dense[1].mean, 7);
  EXPECT_EQ(spec.dense[1].inv_std, 1) << "a constant column is only centred";
  EXPECT_EQ(spec.dense[2].mean, 0) << "not asked for";
  EXPECT_EQ(spec.dense[0].config.missing, 100);
  EXPECT_EQ(spec.dense[0].config.clip.size(), 2u);
}

constexpr const char* kSaved =
    "format = 'csv'\ntrain = 'f'\nslots = ['a']\n"
    "dense = ['z', {name='x', standardise=true}, {name='y', standardise=true}]";

TEST(DenseStats, SavedOnesAreFoundByName) {
  MemoryEnv env;
  env.files["f"] = "label,a,x,y,z\n1,A,1,8,5\n0,A,2,7,5\n1,A,5,7,6\n";
  const FeatureSpec measured = Measured(env, DataConfigFrom(kSaved));
  FeatureSpec loaded = FeatureSpec::Resolve(
      DataConfigFrom("format = 'csv'\nslots = ['a']\ndense = [{name='y', standardise=true}, 'z']"));
  LoadDenseStats(SaveDenseStats(measured), &loaded);
  EXPECT_EQ(loaded.dense[0].mean, measured.dense[2].mean);
  EXPECT_EQ(loaded.dense[0].inv_std, measured.dense[2].inv_std);
  EXPECT_EQ(loaded.dense[1].mean, 0);
}

TEST(DenseStats, AColumnThatWasNotSavedIsNamed) {
  const FeatureSpec saved = FeatureSpec::Resolve(DataConfigFrom(kSaved));
  FeatureSpec spec = FeatureSpec::Resolve(
      DataConfigFrom("format = 'csv'\nslots = ['a']\n"
                     "dense = [{name='x', standardise=true}, {name='z', standardise=true}]"));
  spec.dense[0].mean = 5;
  const auto load = [&] { LoadDenseStats(SaveDenseStats(saved), &spec); };
  EXPECT_EQ(CodeOf(load), ErrorCode::kUsage);
  EXPECT_THAT(ErrorOf(load), HasSubstr("data.dense: column z has standardise = true"));
  EXPECT_EQ(spec.dense[0].mean, 5);
}

TEST(DenseStats, DamagedOnesAreRefused) {
  FeatureSpec spec = FeatureSpec::Resolve(DataConfigFrom(kSaved));
  const std::string good = SaveDenseStats(spec);
  const auto refused = [&](const std::string& stats) {
    return CodeOf([&] { LoadDenseStats(stats, &spec); }) == ErrorCode::kCorruption;
  };
  EXPECT_FALSE(refused(good));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_TRUE(refused(good.substr(0, i))) << i;
    std::string changed = good;
    changed[i] ^= 1;
    EXPECT_TRUE(refused(changed)) << i;
  }
  EXPECT_TRUE(refused(good + "x"));
  spec.dense[1].inv_std = -1;
  EXPECT_TRUE(refused(SaveDenseStats(spec)));
}

TEST(DenseStats, MeasuresAfterTheLogarithm) {
  MemoryEnv env;
  env.files["f"] = "label,a,x\n1,A,0\n0,A,3\n";
  const FeatureSpec spec =
      Measured(env, DataConfigFrom("format = 'csv'\ntrain = 'f'\nslots = ['a']\n"
                                   "dense = [{name='x', log=true, standardise=true}]"));
  const double half = static_cast<float>(std::log(4.0)) / 2.0;
  EXPECT_DOUBLE_EQ(spec.dense[0].mean, half);
  EXPECT_DOUBLE_EQ(spec.dense[0].inv_std, 1 / half);
}

TEST(DenseStats, LooksAtTheFirstRowsOfTheFilesInTheirOrder) {
  MemoryEnv env;
  env.files["f1"] = "label,a,x\n1,A,1\n";
  env.files["f2"] = "label,a,x\n1,A,3\n0,A,1000\n";
  DataConfig config = DataConfigFrom(
      "format = 'csv'\ntrain = 'f*'\nslots = ['a']\ndense = [{name='x', standardise=true}]\n"
      "standardise_rows = 2");
  EXPECT_EQ(Measured(env, config).dense[0].mean, 2);
}

TEST(DenseStats, DoesNotDependOnThreadsOrShuffle) {
  MemoryEnv env;
  env.files["f"] = "label,a,x\n";
  for (int i = 0; i < 200'000; ++i) env.files["f"] += "1,A," + std::to_string(i % 977) + ".1\n";
  DataConfig config = DataConfigFrom(
      "format = 'csv'\ntrain = 'f'\nslots = ['a']\ndense = [{name='x', standardise=true}]\n"
      "standardise_rows = 150000");
  config.threads = 1;
  const FeatureSpec expected = Measured(env, config);
  config.threads = 3;
  config.shuffle = 1000;
  const FeatureSpec spec = Measured(env, config);
  EXPECT_EQ(spec.dense[0].mean, expected.dense[0].mean);
  EXPECT_EQ(spec.dense[0].inv_std, expected.dense[0].inv_std);
}

TEST(DenseStats, ReadsNothingIfNothingIsToBeMeasured) {
  MemoryEnv env;  // no file is there
  const FeatureSpec spec =
      Measured(env, DataConfigFrom("format = 'csv'\ntrain = '-'\nslots = ['a']\ndense = ['x']"));
  EXPECT_EQ(spec.dense[0].inv_std, 1);
}

TEST(DenseStats, StandardInputCannotBeMeasured) {
  MemoryEnv env;
  const DataConfig config = DataConfigFrom(
      "format = 'csv'\ntrain = '-'\nslots = ['a']\ndense = [{name='x', standardise=true}]");
  EXPECT_THAT(ErrorOf([&] { Measured(env, config); }),
              HasSubstr("which standard input does not allow"));
}

}  // namespace
}  // namespace terrace
