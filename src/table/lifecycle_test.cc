#include "table/lifecycle.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace terrace {
namespace {

LifeConfig Config() {
  LifeConfig config;
  config.decay = 0.5;
  config.decay_ticks = 10;
  return config;
}

TEST(LifeRules, CountsUsesAndForgetsHalfInTheGivenTime) {
  const LifeRules rules(Config());
  RowStats stats;
  rules.Use(5, 3, 1, &stats);
  EXPECT_EQ(stats.show, 3);
  EXPECT_EQ(stats.click, 1);
  EXPECT_EQ(stats.seen, 5u);
  rules.Use(15, 1, 0, &stats);
  EXPECT_EQ(stats.show, 2.5f);
  EXPECT_EQ(stats.click, 0.5f);
  rules.Use(15 + 100, 0, 0, &stats);  // beyond the table of near decays
  EXPECT_EQ(stats.show, 2.5f / 1024);
}

TEST(LifeRules, WithoutDecayNothingIsForgotten) {
  const LifeRules rules{LifeConfig{}};
  RowStats stats;
  rules.Use(1, 3, 1, &stats);
  rules.Use(4'000'000'000u, 1, 1, &stats);
  EXPECT_EQ(stats.show, 4);
  EXPECT_EQ(stats.click, 2);
}

TEST(LifeRules, ScoresShowsWithoutClickAndClicks) {
  LifeConfig config;
  config.show_weight = 0.25;
  config.click_weight = 2;
  EXPECT_EQ(LifeRules(config).Score({10, 4, 1}), 0.25f * 6 + 2 * 4);
}

TEST(LifeRules, ALevelChangesWithUseAndNotWithTime) {
  const LifeRules rules(Config());
  RowStats early{8, 0, 10}, late{8, 0, 50};
  // Four half-lives later the same score is worth 16 times as much, that is 64 sixteenths.
  EXPECT_EQ(rules.Level(late) - rules.Level(early), 64);
  RowStats twice = early;
  twice.show *= 2;
  EXPECT_EQ(rules.Level(twice) - rules.Level(early), 16);
}

TEST(DueRule, NothingIsDueWithoutRules) {
  EXPECT_FALSE(DueRule{}.Due(RowStats{0, 0, 0}));
  const LifeRules rules{LifeConfig{}};
  EXPECT_FALSE((DueRule{&rules, 4'000'000'000u, {}}).Due(RowStats{0, 0, 1}));
}

TEST(DueRule, ARowIsDueWhenItWasNotSeenForMoreTicks) {
  LifeConfig config;
  config.unseen = 10;
  const LifeRules rules(config);
  EXPECT_FALSE((DueRule{&rules, 30, {}}).Due(RowStats{1, 0, 20}));
  EXPECT_TRUE((DueRule{&rules, 31, {}}).Due(RowStats{1, 0, 20}));
}

TEST(DueRule, ALowScoreCountsOnlyWhenTheRowRests) {
  LifeConfig config = Config();
  config.min_score = 0.8;
  config.score_ticks = 5;
  const LifeRules rules(config);
  const RowStats low{1, 0, 20}, high{0, 0, 20}, clicked{2, 2, 20};
  EXPECT_FALSE((DueRule{&rules, 25, {}}).Due(low));
  EXPECT_TRUE((DueRule{&rules, 26, {}}).Due(low));
  EXPECT_TRUE((DueRule{&rules, 26, {}}).Due(high));
  EXPECT_FALSE((DueRule{&rules, 26, {}}).Due(clicked));
  // Two clicks are worth 0.8 for 13 ticks: 2 * 2^(-13/10) = 0.81, 2 * 2^(-14/10) = 0.76.
  EXPECT_FALSE((DueRule{&rules, 33, {}}).Due(clicked));
  EXPECT_TRUE((DueRule{&rules, 34, {}}).Due(clicked));
}

TEST(DueRule, WhatIsDueStaysDue) {
  LifeConfig config = Config();
  config.min_score = 0.8;
  config.score_ticks = 3;
  config.unseen = 60;
  const LifeRules rules(config);
  for (float clicks : {0.0f, 1.0f, 3.0f, 20.0f}) {
    bool was = false;
    for (uint32_t now = 100; now < 300; ++now) {
      const bool is = (DueRule{&rules, now, {}}).Due(RowStats{clicks + 1, clicks, 100});
      EXPECT_TRUE(is || !was);
      was = is;
    }
    EXPECT_TRUE(was);
  }
}

TEST(LifeConfig, RefusesRulesThatMakeNoSenseTogether) {
  const auto refused = [](auto set) {
    LifeConfig config;
    set(&config);
    try {
      config.Check("users");
    } catch (const Error& e) {
      return e.code() == ErrorCode::kUsage &&
             std::string(e.what()).find("[tables.users.life]") != std::string::npos;
    }
    return false;
  };
  EXPECT_FALSE(refused([](LifeConfig*) {}));
  EXPECT_FALSE(refused([](LifeConfig* c) { c->max_rows = 5; }));
  EXPECT_TRUE(refused([](LifeConfig* c) { c->max_rows = 5, c->min_score = 1; }));
  EXPECT_TRUE(
      refused([](LifeConfig* c) { c->min_score = 1, c->show_weight = 0, c->click_weight = 0; }));
  EXPECT_TRUE(refused([](LifeConfig* c) { c->min_score = 1, c->unseen = 10; }));
  EXPECT_TRUE(refused([](LifeConfig* c) { c->decay = 0.9; }));
}

}  // namespace
}  // namespace terrace
