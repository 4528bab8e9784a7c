// Invariant: same seed, same data, same CPU kernels: bitwise equal model, whatever the threads.
#include <gtest/gtest.h>

#include "train/train_testing.h"

namespace terrace {
namespace {

void ExpectSameRun(const RunReport& a, const RunReport& b) {
  EXPECT_EQ(a.model_digest, b.model_digest);
  ASSERT_EQ(a.evaluations.size(), b.evaluations.size());
  for (size_t i = 0; i < a.evaluations.size(); ++i) {
    EXPECT_EQ(a.evaluations[i].metrics.auc, b.evaluations[i].metrics.auc);
    EXPECT_EQ(a.evaluations[i].metrics.logloss, b.evaluations[i].metrics.logloss);
    EXPECT_EQ(a.evaluations[i].metrics.copc, b.evaluations[i].metrics.copc);
  }
  EXPECT_EQ(a.train_loss, b.train_loss);
  EXPECT_EQ(a.train_auc, b.train_auc);
  EXPECT_EQ(a.saturated, b.saturated);
}

void ExpectSameForAnyThreads(std::vector<std::string> sets) {
  sets.push_back("train.threads=1");
  const RunReport one = Train(SmallRun(sets));
  for (const char* threads : {"2", "3", "5"}) {
    SCOPED_TRACE(std::string("train.threads=") + threads);
    sets.back() = std::string("train.threads=") + threads;
    ExpectSameRun(one, Train(SmallRun(sets)));
  }
}

class ExactModels : public ::testing::TestWithParam<const char*> {};
TEST_P(ExactModels, AnyThreadCountGivesTheSameBits) {
  ExpectSameForAnyThreads({std::string("model.kind=") + GetParam(), "train.epochs=2"});
}
INSTANTIATE_TEST_SUITE_P(Kinds, ExactModels,
                         ::testing::Values("lr", "fm", "widedeep", "deepfm", "dcnv2", "dlrm"),
                         [](const auto& test) { return std::string(test.param); });

class ExactOptimizers : public ::testing::TestWithParam<const char*> {};
TEST_P(ExactOptimizers, AnyThreadCountGivesTheSameBits) {
  ExpectSameForAnyThreads({std::string("tables.main.optimizer=") + GetParam(),
                           "tables.main.l2=1e-4", "tables.main.clip_norm=0.01"});
}
INSTANTIATE_TEST_SUITE_P(Kinds, ExactOptimizers,
                         ::testing::Values("sgd", "adagrad", "rowadagrad", "adam", "ftrl"),
                         [](const auto& test) { return std::string(test.param); });

struct CodecCase {
  const char* weights;
  const char* state;
  const char* rounding;
  const char* optimizer;
};
class ExactCodecs : public ::testing::TestWithParam<CodecCase> {};
TEST_P(ExactCodecs, AnyThreadCountGivesTheSameBits) {
  const CodecCase& c = GetParam();
  ExpectSameForAnyThreads({std::string("tables.main.weight_codec=") + c.weights,
                           std::string("tables.main.state_codec=") + c.state,
                           std::string("tables.main.rounding=") + c.rounding,
                           std::string("tables.main.optimizer=") + c.optimizer,
                           "tables.main.dim=9"});
}
INSTANTIATE_TEST_SUITE_P(Kinds, ExactCodecs,
                         ::testing::Values(CodecCase{"int8", "fp32", "stochastic", "adagrad"},
                                           CodecCase{"int8", "int8", "stochastic", "adam"},
                                           CodecCase{"int16", "int8", "nearest", "adagrad"},
                                           CodecCase{"int16", "int16", "stochastic", "ftrl"},
                                           CodecCase{"fp16", "bf16", "stochastic", "rowadagrad"},
                                           CodecCase{"bf16", "fp16", "nearest", "adam"},
                                           CodecCase{"fp32", "int8", "stochastic", "adagrad"}),
                         [](const auto& test) {
                           return std::string(test.param.weights) + "_" + test.param.state + "_" +
                                  test.param.rounding + "_" + test.param.optimizer;
                         });

class ExactDense : public ::testing::TestWithParam<const char*> {};
TEST_P(ExactDense, AnyThreadCountGivesTheSameBits) {
  ExpectSameForAnyThreads({std::string("optimizer.kind=") + GetParam(), "optimizer.clip_norm=0.1",
                           "optimizer.l2=1e-5", "model.dropout=0.3"});
}
INSTANTIATE_TEST_SUITE_P(Kinds, ExactDense, ::testing::Values("sgd", "adagrad", "adam"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Exactness, HoldsForOddBatchesAndSlices) {
  for (const char* batch : {"train.batch=1", "train.batch=7", "train.batch=1000"})
    for (const char* slices : {"train.slices=1", "train.slices=3", "train.slices=16"}) {
      SCOPED_TRACE(std::string(batch) + " " + slices);
      std::vector<std::string> sets = {batch, slices, "train.max_batches=40", "train.threads=1"};
      const RunReport one = Train(SmallRun(sets));
      sets.back() = "train.threads=3";
      ExpectSameRun(one, Train(SmallRun(sets)));
    }
}

TEST(Exactness, DoesNotDependOnReaderThreadsOrQueues) {
  const RunReport base = Train(SmallRun({"data.threads=1", "train.queue=1"}));
  ExpectSameRun(base, Train(SmallRun({"data.threads=4", "train.queue=1"})));
  ExpectSameRun(base, Train(SmallRun({"data.threads=3", "train.queue=9"})));
}

TEST(Exactness, EvaluationChangesNothing) {
  const RunReport without = Train(SmallRun({}));
  const RunReport with = Train(SmallRun({"eval.every=1"}));
  EXPECT_GT(with.evaluations.size(), without.evaluations.size());
  EXPECT_EQ(with.model_digest, without.model_digest);
  EXPECT_EQ(with.evaluations.back().metrics.auc, without.evaluations.back().metrics.auc);
}

TEST(Exactness, SeveralTablesAndMeanPooling) {
  ExpectSameForAnyThreads(
      {"model.kind=dcnv2", "data.synthetic.slots=4", "tables.main.dim=4", "tables.wide.dim=9",
       "tables.wide.optimizer=ftrl",
       "data.slots=[\"a\", {name=\"b\", table=\"wide\", pooling=\"mean\"}, {name=\"c\", "
       "pooling=\"mean\"}, {name=\"d\", table=\"wide\"}]"});
}

TEST(Exactness, SlotsOfSeveralDimsAndNone) {
  for (const char* kind : {"model.kind=fm", "model.kind=deepfm"})
    ExpectSameForAnyThreads(
        {kind, "tables.main.dim=4", "tables.wide.dim=9", "tables.weights.dim=0",
         R"(data.slots=["s0", {name="s1", table="wide", pooling="mean"}, "s2", )"
         R"({name="s3..s4", table="weights"}])"});
  ExpectSameForAnyThreads({"model.kind=dlrm", "tables.wide.dim=9",
                           R"(data.slots=["s0", {name="s1..s2", table="wide"}, "s3..s4"])"});
}

TEST(Exactness, VectorsThatWaitForAdmission) {
  for (const char* kind : {"model.kind=fm", "model.kind=widedeep", "model.kind=deepfm"})
    ExpectSameForAnyThreads(
        {kind, "tables.weights.dim=0", "tables.weights.optimizer=ftrl", "tables.wide.dim=9",
         "tables.main.admission.by=score", "tables.main.admission.score=3",
         R"(data.slots=[{name="s0..s2", linear_table="weights", pooling="mean"}, )"
         R"({name="s3", table="wide"}, {name="s4", table="weights"}])"});
}

// What the digests above compare is not a constant.
TEST(Exactness, DigestTellsModelsApart) {
  const RunReport base = Train(SmallRun({}));
  EXPECT_EQ(base.model_digest.size(), 32u);
  for (const char* change : {"seed=8", "train.slices=2", "tables.main.lr=0.051",
                             "optimizer.lr=0.0011", "train.max_batches=5", "data.shuffle=0",
                             "tables.main.weight_codec=bf16", "tables.main.state_codec=int16"}) {
    EXPECT_NE(Train(SmallRun({change})).model_digest, base.model_digest) << change;
  }
  const RunReport stochastic = Train(SmallRun({"tables.main.weight_codec=int8"}));
  EXPECT_NE(Train(SmallRun({"tables.main.weight_codec=int8", "tables.main.rounding=nearest"}))
                .model_digest,
            stochastic.model_digest);
}

}  // namespace
}  // namespace terrace
