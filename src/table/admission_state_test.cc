// Config errors, units, and states that are not what Save wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "table/admission_testing.h"

namespace terrace {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

AdmissionConfig Read(const std::string& toml) {
  AdmissionConfig config;
  ConfigFile::Parse(toml, "t.toml").Read([&](ConfigVisitor& v) { config.Visit(v); });
  config.Check("tables.user.admission");
  return config;
}

TEST(AdmissionConfig, TakesWhatMakesSense) {
  EXPECT_EQ(Read("").by, AdmitBy::kAll);
  EXPECT_EQ(Read("by = \"count\"\ncount = 65535\nkeys = 5\nforget = 9").count, 65535);
  EXPECT_EQ(Read("by = \"probability\"\nprobability = 1.0").probability, 1);
  EXPECT_EQ(Read("by = \"score\"\nscore = 10.0\nshow_weight = 0.0").click_weight, 1);
}

TEST(AdmissionConfig, SaysWhatToDoAboutWhatDoesNot) {
  const struct {
    const char* toml;
    const char* message;
  } cases[] = {
      {"count = 2",
       "tables.user.admission.count is set, but keys are not admitted by count: set "
       "by = \"count\" or remove count"},
      {"by = \"count\"", "set count, from 1 to 65535"},
      {"by = \"count\"\ncount = 65536", "65535"},
      {"by = \"count\"\ncount = 2\nprobability = 0.5", "remove probability"},
      {"by = \"count\"\ncount = 2\nclick_weight = 3.0", "remove click_weight"},
      {"by = \"probability\"", "set probability, above 0 and up to 1"},
      {"by = \"score\"", "set score, above 0"},
      {"by = \"score\"\nscore = 1.0\nshow_weight = 0.0\nclick_weight = 0.0", "raise one"},
      {"by = \"score\"\nscore = 1e4", "a weight of 0.1 is less than score / 65535"},
      {"keys = 5", "keys is set, but by = \"all\" remembers no keys"},
      {"forget = 5", "forget is set, but by = \"all\" remembers no keys"},
  };
  for (const auto& c : cases)
    EXPECT_THAT([&] { Read(c.toml); }, ThrowsMessage<Error>(HasSubstr(c.message))) << c.toml;
}

TEST(AdmissionUnits, AreExactWhereWeightsAndScoreHaveAUnitInCommon) {
  const struct {
    double score, show, click;
    uint32_t limit, show_units, click_units;
  } cases[] = {
      {10, 0.1, 1, 100, 1, 10},
      {1, 0.1, 1, 10, 1, 10},
      {2.5, 0.1, 1, 25, 1, 10},
      {1.5, 0.2, 0.7, 15, 2, 7},
      {3, 0, 1, 3, 0, 1},
      {3, 1, 0, 3, 1, 0},
      {0.5, 1, 7, 1, 1, 1},
      {0.5, 0.1, 7, 5, 1, 5},
      {6553.5, 0.1, 1, 65535, 1, 10},
      {1, 0.0001, 0.3, 10000, 1, 3000},
  };
  for (const auto& c : cases) {
    AdmissionConfig config;
    config.by = AdmitBy::kScore;
    config.score = c.score;
    config.show_weight = c.show;
    config.click_weight = c.click;
    const AdmissionUnits units = AdmissionUnits::Of(config);
    EXPECT_EQ(units.limit, c.limit) << c.score;
    EXPECT_EQ(units.show, c.show_units) << c.score;
    EXPECT_EQ(units.click, c.click_units) << c.score;
  }
}

TEST(AdmissionUnits, AreRoundedUpWhereNot) {
  AdmissionConfig config;
  config.by = AdmitBy::kScore;
  config.score = 3.14159265358979;
  config.show_weight = 0.001234567891;
  const AdmissionUnits units = AdmissionUnits::Of(config);
  EXPECT_EQ(units.limit, 65535u);
  const double unit = config.score / units.limit;
  EXPECT_GE(units.show * unit, config.show_weight);
  EXPECT_LT(units.show * unit, config.show_weight + unit);
  EXPECT_GE(units.click * unit, config.click_weight);
  EXPECT_LT(units.click * unit, config.click_weight + unit);
}

// A little of everything: keys aside, two periods, a further layer.
Admission Filled(const AdmissionConfig& config) {
  Admission admission(config, 5);
  std::vector<uint64_t> occurrences;
  for (uint64_t key = 0; key < 400; ++key) occurrences.insert(occurrences.end(), 1 + key % 4, key);
  for (const KeyBatch& batch : Shuffled(occurrences, 100, 3)) StepOn(&admission, batch);
  return admission;
}

AdmissionConfig SmallConfig(int64_t count) {
  AdmissionConfig config;
  config.by = AdmitBy::kCount;
  config.count = count;
  config.keys = 100;
  config.forget = 7;
  return config;
}

TEST(AdmissionState, RefusesEveryCutAndIsThenUnchanged) {
  for (const int count : {9, 20}) {
    const std::string saved = Filled(SmallConfig(count)).Save();
    Admission admission(SmallConfig(count), 5);
    const std::string before = admission.Save();
    for (size_t size = 0; size < saved.size(); ++size) {
      try {
        admission.Load(std::string_view(saved).substr(0, size));
        FAIL() << size;
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), ErrorCode::kCorruption) << size;
      }
    }
    EXPECT_THROW(admission.Load(saved + "x"), Error);
    EXPECT_EQ(admission.Save(), before);
    admission.Load(saved);
    EXPECT_EQ(admission.Save(), saved);
  }
}

TEST(AdmissionState, SurvivesAnyChangedByte) {
  const std::string saved = Filled(SmallConfig(9)).Save();
  RandomStream random(1, 1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string hostile = saved;
    const size_t first = i < 200 ? static_cast<size_t>(i) : random.Next() % saved.size();
    hostile[first] = static_cast<char>(random.Next());
    if (i % 3 == 0) hostile[random.Next() % saved.size()] = static_cast<char>(random.Next());
    Admission admission(SmallConfig(9), 5);
    try {
      admission.Load(hostile);
      // What was taken can be worked with.
      std::vector<uint64_t> keys(500);
      for (uint64_t& key : keys) key = random.Next();
      StepOn(&admission, {keys, std::vector<uint32_t>(500, 1), {}, UINT32_MAX - 8});
      StepOn(&admission, {keys, std::vector<uint32_t>(500, 1), {}, UINT32_MAX});
    } catch (const Error& e) {
      ++refused;
      ASSERT_TRUE(e.code() == ErrorCode::kCorruption || e.code() == ErrorCode::kUsage) << e.what();
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(AdmissionState, SaysThatTheConfigIsAnother) {
  const std::string saved = Filled(SmallConfig(9)).Save();
  Admission other_count(SmallConfig(10), 5), other_seed(SmallConfig(9), 6);
  EXPECT_THAT(
      [&] { other_count.Load(saved); },
      ThrowsMessage<Error>(HasSubstr("a limit of 9 units and forget = 7, the config a limit "
                                     "of 10")));
  EXPECT_THAT([&] { other_seed.Load(saved); }, ThrowsMessage<Error>(HasSubstr("another seed")));
  AdmissionConfig more_keys = SmallConfig(9);
  more_keys.keys = 5000;
  Admission larger(more_keys, 5);
  larger.Load(saved);
  EXPECT_EQ(larger.Save(), saved);
}

}  // namespace
}  // namespace terrace
