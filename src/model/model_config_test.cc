#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config.h"
#include "base/error.h"
#include "model/dense_optimizer.h"
#include "model/model.h"

namespace terrace {
namespace {

template <typename Config>
Config Read(const std::string& text) {
  Config config;
  ConfigFile::Parse(text, "test.toml").Read([&](ConfigVisitor& v) { config.Visit(v); });
  return config;
}

template <typename Config>
std::string ReadError(const std::string& text) {
  try {
    Read<Config>(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "no error";
}

TEST(ModelConfig, ReadsEveryField) {
  const auto config = Read<ModelConfig>(R"(
    kind = "dcnv2"
    hidden = [400, 300]
    bottom = [32, 16]
    activation = "sigmoid"
    dropout = 0.25
    cross_layers = 3
    cross_rank = 64
    cross_structure = "stacked"
  )");
  EXPECT_EQ(config.kind, ModelKind::kDcnV2);
  EXPECT_EQ(config.hidden, (std::vector<int64_t>{400, 300}));
  EXPECT_EQ(config.bottom, (std::vector<int64_t>{32, 16}));
  EXPECT_EQ(config.activation, Activation::kSigmoid);
  EXPECT_EQ(config.dropout, 0.25);
  EXPECT_EQ(config.cross_layers, 3);
  EXPECT_EQ(config.cross_rank, 64);
  EXPECT_EQ(config.cross_structure, CrossStructure::kStacked);
}

TEST(ModelConfig, KnowsEveryKindByName) {
  const std::pair<const char*, ModelKind> kinds[] = {{"lr", ModelKind::kLr},
                                                     {"fm", ModelKind::kFm},
                                                     {"widedeep", ModelKind::kWideDeep},
                                                     {"deepfm", ModelKind::kDeepFm},
                                                     {"dcnv2", ModelKind::kDcnV2},
                                                     {"dlrm", ModelKind::kDlrm}};
  for (const auto& [name, kind] : kinds)
    EXPECT_EQ(Read<ModelConfig>("kind = \"" + std::string(name) + "\"").kind, kind);
}

TEST(ModelConfig, PrintsWhatItReads) {
  ModelConfig config;
  config.kind = ModelKind::kDlrm;
  config.hidden = {7};
  config.activation = Activation::kTanh;
  config.dropout = 0.5;
  const std::string text = PrintConfig([&](ConfigVisitor& v) { config.Visit(v); });
  const auto again = Read<ModelConfig>(text);
  EXPECT_EQ(again.kind, ModelKind::kDlrm);
  EXPECT_EQ(again.hidden, config.hidden);
  EXPECT_EQ(again.activation, Activation::kTanh);
  EXPECT_EQ(again.dropout, 0.5);
}

TEST(ModelConfig, RefusesValuesOutOfRange) {
  EXPECT_THAT(ReadError<ModelConfig>("kind = \"mlp\""), testing::HasSubstr("kind"));
  EXPECT_THAT(ReadError<ModelConfig>("hidden = [64, 0]"), testing::HasSubstr("hidden"));
  EXPECT_THAT(ReadError<ModelConfig>("dropout = 1.0"), testing::HasSubstr("dropout"));
  EXPECT_THAT(ReadError<ModelConfig>("activation = \"none\""), testing::HasSubstr("activation"));
  EXPECT_THAT(ReadError<ModelConfig>("cross_layers = 0"), testing::HasSubstr("cross_layers"));
  EXPECT_THAT(ReadError<ModelConfig>("cross_rank = -1"), testing::HasSubstr("cross_rank"));
}

TEST(DenseOptimizerConfig, ReadsEveryField) {
  const auto config = Read<DenseOptimizerConfig>(
      "kind = \"adagrad\"\nlr = 0.5\nl2 = 0.01\nclip_norm = 3.0\neps = 1e-6\n"
      "beta1 = 0.8\nbeta2 = 0.95\n");
  EXPECT_EQ(config.kind, DenseOptimizerKind::kAdaGrad);
  EXPECT_EQ(config.lr, 0.5);
  EXPECT_EQ(config.l2, 0.01);
  EXPECT_EQ(config.clip_norm, 3);
  EXPECT_EQ(config.eps, 1e-6);
  EXPECT_EQ(config.beta1, 0.8);
  EXPECT_EQ(config.beta2, 0.95);
}

TEST(DenseOptimizerConfig, RefusesValuesOutOfRange) {
  EXPECT_THAT(ReadError<DenseOptimizerConfig>("lr = -0.1"), testing::HasSubstr("lr"));
  EXPECT_THAT(ReadError<DenseOptimizerConfig>("beta1 = 1.0"), testing::HasSubstr("beta1"));
  EXPECT_THAT(ReadError<DenseOptimizerConfig>("beta2 = 1.0"), testing::HasSubstr("beta2"));
  EXPECT_THAT(ReadError<DenseOptimizerConfig>("eps = 0.0"), testing::HasSubstr("eps"));
  EXPECT_THAT(ReadError<DenseOptimizerConfig>("kind = \"ftrl\""), testing::HasSubstr("kind"));
}

}  // namespace
}  // namespace terrace
