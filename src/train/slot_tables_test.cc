// Slots whose tables differ: in dim, without vectors, and with vectors and linear weights apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFiveSlots = R"(data.slots=[{name="s0..s4", linear_table="weights"}])";

void ExpectSamePredictions(const RunReport& a, const RunReport& b) {
  EXPECT_EQ(a.train_loss, b.train_loss);
  EXPECT_EQ(a.evaluations.back().metrics.auc, b.evaluations.back().metrics.auc);
  EXPECT_EQ(a.evaluations.back().metrics.logloss, b.evaluations.back().metrics.logloss);
}

TEST(SlotTables, VectorsAndLinearWeightsApartTrainAsInOneRow) {
  for (const char* kind : {"fm", "widedeep", "deepfm"})
    for (const char* optimizer : {"sgd", "adagrad", "rowadagrad", "adam", "ftrl"}) {
      SCOPED_TRACE(std::string(kind) + " " + optimizer);
      std::vector<std::string> sets = {std::string("model.kind=") + kind,
                                       std::string("tables.main.optimizer=") + optimizer};
      const RunReport one = Train(SmallRun(sets));
      sets.insert(sets.end(), {kFiveSlots, "tables.weights.dim=0",
                               std::string("tables.weights.optimizer=") + optimizer});
      const RunReport two = Train(SmallRun(sets));
      ExpectSamePredictions(one, two);
      EXPECT_EQ(two.rows, 2 * one.rows);
    }
}

TEST(SlotTables, LinearWeightsTrainBeforeTheirVectorsAreAdmitted) {
  const RunReport lr = Train(SmallRun({"model.kind=lr"}));
  const RunReport fm =
      Train(SmallRun({"model.kind=fm", kFiveSlots, "tables.weights.dim=0",
                      "tables.main.admission.by=count", "tables.main.admission.count=65535"}));
  ExpectSamePredictions(lr, fm);
  EXPECT_EQ(fm.rows, lr.rows);
  EXPECT_GT(fm.life.refused, 0);
}

TEST(SlotTables, EveryKeyHasALinearWeightAndAdmittedKeysHaveAVector) {
  const std::vector<std::string> admission = {"tables.main.admission.by=score",
                                              "tables.main.admission.score=10"};
  const int64_t keys = Train(SmallRun({})).rows;
  const int64_t admitted = Train(SmallRun(admission)).rows;
  EXPECT_GT(admitted, 0);
  EXPECT_LT(admitted, keys);
  std::vector<std::string> two = admission;
  two.insert(two.end(), {kFiveSlots, "tables.weights.dim=0"});
  EXPECT_EQ(Train(SmallRun(two)).rows, keys + admitted);
}

TEST(SlotTables, ARowOfALinearWeightIsAKeyAWeightAndItsState) {
  TableConfig config;
  config.dim = 0;
  EXPECT_EQ(TableSchema::Make("weights", config, true, 1).layout.stride, 8 + 4 + 4);
}

TEST(SlotTables, LinearSlotsWorkBesideVectors) {
  const char* slots =
      R"(data.slots=["s0", {name="s1..s2", table="weights"}, {name="s3", table="wide"}, "s4"])";
  for (const char* kind : {"model.kind=fm", "model.kind=widedeep", "model.kind=deepfm"}) {
    const RunReport run =
        Train(SmallRun({kind, slots, "tables.weights.dim=0", "tables.wide.dim=9"}));
    EXPECT_GT(run.evaluations.back().metrics.auc, 0.5) << kind;
  }
}

TEST(SlotTables, ExplainsTablesThatDoNotFitTheModel) {
  for (const char* kind : {"model.kind=dcnv2", "model.kind=dlrm"}) {
    EXPECT_THAT(UsageError({kind, "tables.main.dim=0"}), HasSubstr("tables.main.dim is 0"));
    EXPECT_THAT(UsageError({kind, kFiveSlots, "tables.weights.dim=0"}),
                HasSubstr("this model.kind has no linear weights"));
  }
  EXPECT_THAT(UsageError({"model.kind=lr", kFiveSlots, "tables.weights.dim=0"}),
              HasSubstr("has linear weights alone"));
  EXPECT_THAT(UsageError({kFiveSlots, "tables.weights.dim=3"}),
              HasSubstr("tables.weights.dim is 3"));
  EXPECT_THAT(UsageError({kFiveSlots, "tables.weights.dim=0", "tables.main.dim=0"}),
              HasSubstr("tables.main.dim is 0: its rows would be empty"));
  EXPECT_EQ(UsageError({kFiveSlots, "tables.weight.dim=0"}),
            "slot `s0` uses table `weights`, which the config does not have; did you mean "
            "`weight`?");
  EXPECT_THAT(UsageError({"model.kind=fm", "tables.main.dim=0"}),
              HasSubstr("the tables of all slots have dim 0"));
}

}  // namespace
}  // namespace terrace
