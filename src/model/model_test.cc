#include "model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

ModelInputs Inputs(std::vector<int> dims, int dense) {
  std::vector<std::string> names;
  for (size_t i = 0; i < dims.size(); ++i) names.push_back("slot_" + std::string(1, 'a' + i));
  return {.slot_dims = std::move(dims), .slot_names = std::move(names), .dense_columns = dense};
}

std::unique_ptr<Model> MakeModel(ModelKind kind, const ModelInputs& inputs, double dropout = 0) {
  ModelConfig config;
  config.kind = kind;
  config.hidden = {33, 17};
  config.bottom = {9};
  config.dropout = dropout;
  return Model::Make(config, inputs, &CpuDevice());
}

constexpr ModelKind kKinds[] = {ModelKind::kLr,     ModelKind::kFm,    ModelKind::kWideDeep,
                                ModelKind::kDeepFm, ModelKind::kDcnV2, ModelKind::kDlrm};

// Logits, then all gradients, of a pass over examples [first, first + rows) of a fixed batch.
std::vector<float> Pass(const Model& model, SliceRun& run, int64_t first, int64_t rows,
                        bool training = true) {
  Stream stream(&CpuDevice());
  std::vector<float> params(model.param_count());
  model.InitParams(1, params.data());
  run.Start(&stream, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<float> x = RandomFloats(model.input_width(), 100 + first + r);
    std::copy(x.begin(), x.end(), run.input().row(r));
    if (model.uses_linear()) run.linear()[r] = 0.1f * static_cast<float>(first + r);
  }
  run.Forward(params.data(), {training, 77, first});
  std::vector<float> all(run.logits(), run.logits() + rows);

  const std::vector<float> logit_grad = RandomFloats(rows, 3);
  const int64_t width = model.embedding_width();
  std::vector<float> grads(model.param_count() + rows * (width + 1), std::nanf(""));
  float* const vectors = grads.data() + model.param_count();
  run.Backward(logit_grad.data(), {vectors, rows, width, width}, vectors + rows * width,
               grads.data());
  if (!model.uses_linear()) grads.resize(grads.size() - rows);
  all.insert(all.end(), grads.begin(), grads.end());
  return all;
}

TEST(Model, PassGivesTheSameBitsOnAnyRunAndAnyThread) {
  for (ModelKind kind : kKinds) {
    const auto model = MakeModel(kind, Inputs({8, 8, 8, 8, 8}, 3), 0.3);
    const auto run = model->NewRun(50);
    const std::vector<float> want = Pass(*model, *run, 10, 40);
    for (float x : want) ASSERT_TRUE(std::isfinite(x));

    // A run that has seen other passes, longer and shorter ones.
    const auto used = model->NewRun(64);
    Pass(*model, *used, 0, 64);
    Pass(*model, *used, 3, 1);
    EXPECT_TRUE(SameBits(Pass(*model, *used, 10, 40), want));

    std::vector<std::vector<float>> got(4);
    {
      std::vector<std::jthread> threads;
      for (auto& out : got)
        threads.emplace_back([&] {
          const auto own = model->NewRun(40);
          for (int i = 0; i < 5; ++i) out = Pass(*model, *own, 10, 40);
        });
    }
    for (const auto& out : got) EXPECT_TRUE(SameBits(out, want));
  }
}

TEST(Model, DropoutIsOffOutsideTraining) {
  const auto plain = MakeModel(ModelKind::kDeepFm, Inputs({4, 4}, 2), 0);
  const auto dropping = MakeModel(ModelKind::kDeepFm, Inputs({4, 4}, 2), 0.5);
  ASSERT_EQ(plain->param_count(), dropping->param_count());
  // The layers of the two have different numbers, hence other initial values.
  std::vector<float> params(plain->param_count());
  plain->InitParams(1, params.data());
  Stream stream(&CpuDevice());
  const auto logits = [&](const Model& model, bool training) {
    const auto run = model.NewRun(6);
    run->Start(&stream, 6);
    for (int64_t r = 0; r < 6; ++r) {
      const std::vector<float> x = RandomFloats(model.input_width(), r);
      std::copy(x.begin(), x.end(), run->input().row(r));
    }
    run->Forward(params.data(), {training, 5, 0});
    return std::vector<float>(run->logits(), run->logits() + 6);
  };
  EXPECT_EQ(logits(*dropping, false), logits(*plain, false));
  EXPECT_NE(logits(*dropping, true), logits(*plain, true));
}

TEST(Model, CountsItsParameters) {
  const ModelInputs inputs = Inputs({4, 4, 4}, 2);
  const auto count = [&](ModelKind kind) { return MakeModel(kind, inputs)->param_count(); };
  const int64_t mlp = 14 * 33 + 33 + 33 * 17 + 17 + 17;
  EXPECT_EQ(count(ModelKind::kLr), 1 + 2);
  EXPECT_EQ(count(ModelKind::kFm), 1 + 2);
  EXPECT_EQ(count(ModelKind::kWideDeep), 1 + 2 + mlp);
  EXPECT_EQ(count(ModelKind::kDeepFm), 1 + 2 + mlp);
  EXPECT_EQ(count(ModelKind::kDcnV2), 2 * (14 * 14 + 14) + mlp + 14 + 1);
  EXPECT_EQ(count(ModelKind::kDlrm),
            (2 * 9 + 9 + 9 * 4 + 4) + ((4 + 6) * 33 + 33 + 33 * 17 + 17 + 17) + 1);
}

TEST(Model, HasALinearInputOnlyWhereTheKindHasAWidePart) {
  for (ModelKind kind : kKinds) {
    const auto model = MakeModel(kind, Inputs({4, 4}, 0));
    EXPECT_EQ(model->uses_linear(), UsesLinear(kind));
    const auto run = model->NewRun(2);
    Stream stream(&CpuDevice());
    run->Start(&stream, 2);
    EXPECT_EQ(run->linear() != nullptr, UsesLinear(kind));
  }
}

TEST(Model, InitIsAFunctionOfTheSeedAndDiffersByLayer) {
  const auto model = MakeModel(ModelKind::kDcnV2, Inputs({4, 4}, 0));
  std::vector<float> a(model->param_count()), b(a), c(a);
  model->InitParams(1, a.data());
  model->InitParams(1, b.data());
  model->InitParams(2, c.data());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  const ParamRange first = model->layers()[0]->params();
  const ParamRange second = model->layers()[1]->params();
  ASSERT_EQ(first.size, second.size);
  EXPECT_NE(std::vector<float>(&a[first.begin], &a[first.begin] + first.size),
            std::vector<float>(&a[second.begin], &a[second.begin] + second.size));
}

TEST(Model, NanInAVectorReachesItsLogitAndNoOther) {
  for (ModelKind kind : kKinds) {
    if (!UsesVectors(kind)) continue;
    const auto model = MakeModel(kind, Inputs({4, 4}, 0));
    std::vector<float> params(model->param_count());
    model->InitParams(1, params.data());
    const auto run = model->NewRun(3);
    Stream stream(&CpuDevice());
    run->Start(&stream, 3);
    run->input().row(1)[2] = std::nanf("");
    run->Forward(params.data(), {});
    EXPECT_FALSE(std::isnan(run->logits()[0]));
    EXPECT_TRUE(std::isnan(run->logits()[1])) << static_cast<int>(kind);
    EXPECT_FALSE(std::isnan(run->logits()[2]));
  }
}

std::string MakeError(const ModelConfig& config, const ModelInputs& inputs) {
  try {
    Model::Make(config, inputs, &CpuDevice());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "no error";
}

// Logits of one example whose slots have these vectors; parameters are those of the first seed.
float LogitOf(ModelKind kind, const std::vector<std::vector<float>>& vectors) {
  std::vector<int> dims;
  for (const auto& v : vectors) dims.push_back(static_cast<int>(v.size()));
  const auto model = MakeModel(kind, Inputs(dims, 0));
  std::vector<float> params(model->param_count());
  model->InitParams(1, params.data());
  Stream stream(&CpuDevice());
  const auto run = model->NewRun(1);
  run->Start(&stream, 1);
  float* out = run->input().row(0);
  for (const auto& v : vectors) out = std::copy(v.begin(), v.end(), out);
  run->linear()[0] = 0;
  run->Forward(params.data(), {});
  return run->logits()[0];
}

TEST(Model, VectorsOfDifferentDimsMeetInTheLeadingNumbersOfBoth) {
  const float want = 2 * 7 + 2 * 11 + (7 * 11 + 5 * 13);
  EXPECT_EQ(LogitOf(ModelKind::kFm, {{2}, {7, 5}, {11, 13, 17}}), want);
  EXPECT_EQ(LogitOf(ModelKind::kFm, {{2, 0, 0}, {7, 5, 0}, {11, 13, 17}}), want);
}

TEST(Model, SlotsOfDimZeroTakeNoPartInProducts) {
  EXPECT_EQ(LogitOf(ModelKind::kFm, {{}, {7, 5}, {}, {11, 13}, {}}), 7 * 11 + 5 * 13);
  EXPECT_EQ(LogitOf(ModelKind::kDeepFm, {{}, {7, 5}, {}, {11, 13}, {}}),
            LogitOf(ModelKind::kDeepFm, {{7, 5}, {11, 13}}));
}

TEST(Model, CopiesVectorsOnlyWhereDimsDiffer) {
  const auto pads = [](ModelKind kind, const std::vector<int>& dims) {
    const auto model = MakeModel(kind, Inputs(dims, 2));
    return std::ranges::count_if(model->layers(), [](const auto& l) { return l->name() == "pad"; });
  };
  for (ModelKind kind : {ModelKind::kFm, ModelKind::kDeepFm}) {
    EXPECT_EQ(pads(kind, {8, 8, 8}), 0);
    EXPECT_EQ(pads(kind, {0, 8, 0, 8}), 0);
    EXPECT_EQ(pads(kind, {8, 8, 4}), 1);
  }
  EXPECT_EQ(pads(ModelKind::kDlrm, {8, 8, 8}), 0);
  EXPECT_EQ(pads(ModelKind::kDlrm, {8, 8, 4}), 1);
  EXPECT_EQ(pads(ModelKind::kWideDeep, {8, 8, 4}), 0);
}

TEST(Model, RefusesInputsThatAKindCannotUse) {
  using testing::HasSubstr;
  EXPECT_THAT(MakeError({.kind = ModelKind::kFm}, Inputs({}, 2)), HasSubstr("names none"));
  EXPECT_THAT(MakeError({.kind = ModelKind::kFm}, Inputs({0, 0}, 2)),
              HasSubstr("the tables of all slots have dim 0"));
  for (ModelKind kind : {ModelKind::kDcnV2, ModelKind::kDlrm})
    EXPECT_THAT(MakeError({.kind = kind}, Inputs({8, 0}, 2)),
                testing::AllOf(HasSubstr("has no linear weights"), HasSubstr("slot slot_b")));
  EXPECT_THAT(MakeError({.kind = ModelKind::kDlrm}, Inputs({8}, 0)), HasSubstr("only one slot"));
  EXPECT_THAT(MakeError({.kind = ModelKind::kWideDeep}, Inputs({}, 0)), HasSubstr("no input"));
  EXPECT_THAT(MakeError({.kind = ModelKind::kDcnV2}, Inputs({}, 0)), HasSubstr("no input"));
  EXPECT_THAT(MakeError({.kind = ModelKind::kDeepFm, .hidden = {}}, Inputs({8, 8}, 0)),
              HasSubstr("model.hidden is empty"));
}

}  // namespace
}  // namespace terrace
