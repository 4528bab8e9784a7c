// Models that can express the generator's hidden model nearly reach its AUC; a linear one cannot.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace terrace {
namespace {

struct Gap {
  double auc;
  double best;
};

Gap TrainSynthetic(const std::string& kind) {
  ScratchDir dir;
  const CommandResult r =
      RunCommand("terrace train examples/synthetic.toml --set model.kind=" + kind +
                     " --summary summary.json --quiet",
                 dir.path());
  EXPECT_EQ(r.exit_code, 0) << r.output;
  const auto summary = nlohmann::json::parse(dir.Read("summary.json"));
  return {summary["auc"], summary["best_auc"]};
}

class LearnsInteractions : public ::testing::TestWithParam<const char*> {};
TEST_P(LearnsInteractions, ComesWithinAHundredthOfTheBestAuc) {
  const Gap gap = TrainSynthetic(GetParam());
  EXPECT_GT(gap.auc, gap.best - 0.01);
  EXPECT_LT(gap.auc, gap.best + 0.01);
}
INSTANTIATE_TEST_SUITE_P(Models, LearnsInteractions,
                         ::testing::Values("fm", "widedeep", "deepfm", "dcnv2", "dlrm"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Learning, LogisticRegressionDoesNotReachInteractions) {
  const Gap gap = TrainSynthetic("lr");
  EXPECT_LT(gap.auc, gap.best - 0.01);
  EXPECT_GT(gap.auc, 0.55);
}

}  // namespace
}  // namespace terrace
