#include "train/bottleneck.h"

#include <gtest/gtest.h>

namespace terrace {
namespace {

// A run of 100 s in which `stage` was busy for 90 and training waited for `wait`.
RunReport Report(const std::string& stage, double wait) {
  RunReport report;
  report.seconds = 100;
  for (const char* name : {"read", "dedup", "plan", "pull", "link", "train", "push"})
    report.stages.push_back({name, {.busy = name == stage ? 90.0 : 10.0}, 0});
  report.stages[5].time = {.busy = 100 - wait, .wait_input = wait};
  report.tiers.windows.windows = 10;
  NameBottleneck(&report);
  return report;
}

TEST(Bottleneck, IsTheBusiestStageWhereTrainingWaits) {
  const std::pair<const char*, const char*> advice[] = {
      {"read", "data.threads"}, {"dedup", "train.threads"}, {"plan", "train.batch"},
      {"link", "train.batch"},  {"pull", "train.window"},   {"push", "tiers.disk.memory"}};
  for (const auto& [stage, key] : advice) {
    const RunReport report = Report(stage, 80);
    EXPECT_EQ(report.bottleneck, stage);
    EXPECT_NE(report.advice.find(key), std::string::npos) << stage << ": " << report.advice;
  }
}

TEST(Bottleneck, IsTrainWhereItHardlyWaits) {
  const RunReport report = Report("pull", 19);
  EXPECT_EQ(report.bottleneck, "train");
  EXPECT_EQ(report.advice, "");
}

TEST(Bottleneck, LongerWindowsAreNotAdvisedWhereTheyAreCut) {
  RunReport report = Report("pull", 80);
  report.tiers.windows.cut = 6;
  NameBottleneck(&report);
  EXPECT_EQ(report.advice, "raise tiers.memory.budget: fewer rows come from disk");
}

TEST(Bottleneck, SpreadThinNobodyIsAdvised) {
  // Training waits, yet is the busiest: its threads and the stages share the cores.
  const RunReport report = Report("none", 40);
  EXPECT_EQ(report.bottleneck, "train");
  EXPECT_EQ(report.advice, "");
}

}  // namespace
}  // namespace terrace
