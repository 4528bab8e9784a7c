#include "model/param_map.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "device/kernel_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;

// A model's input by name: slots in order, each with its dim.
struct Input {
  std::vector<std::pair<std::string, int>> slots;
  int dense = 2;

  ModelInputs Get() const {
    ModelInputs inputs;
    for (const auto& [name, dim] : slots) {
      inputs.slot_names.push_back(name);
      inputs.slot_dims.push_back(dim);
    }
    inputs.dense_columns = dense;
    for (int i = 0; i < dense; ++i) inputs.dense_names.push_back(fmt::format("x{}", i));
    return inputs;
  }
};

const std::vector<ModelConfig>& Configs() {
  static const std::vector<ModelConfig> configs = [] {
    std::vector<ModelConfig> all;
    for (ModelKind kind : {ModelKind::kLr, ModelKind::kFm, ModelKind::kWideDeep, ModelKind::kDeepFm,
                           ModelKind::kDlrm})
      all.push_back({.kind = kind, .hidden = {7, 5}, .bottom = {6}});
    for (int64_t rank : {0, 3})
      for (CrossStructure structure : {CrossStructure::kParallel, CrossStructure::kStacked})
        all.push_back({.kind = ModelKind::kDcnV2,
                       .hidden = {7, 5},
                       .cross_layers = 3,
                       .cross_rank = rank,
                       .cross_structure = structure});
    all.push_back({.kind = ModelKind::kDeepFm, .hidden = {7, 5}, .dropout = 0.5});
    all.push_back({.kind = ModelKind::kDcnV2, .hidden = {}});
    return all;
  }();
  return configs;
}

std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Input& input) {
  return Model::Make(config, input.Get(), &CpuDevice());
}

// The logit of an example whose numbers are a function of slot and column; slots and columns that
// `known` does not have are 0.
float LogitOf(const Model& model, const Input& input, const Input& known,
              const std::vector<float>& params) {
  std::map<std::string, int> dims;
  for (const auto& [name, dim] : known.slots) dims[name] = dim;
  Stream stream(&CpuDevice());
  const auto run = model.NewRun(1);
  run->Start(&stream, 1);
  float* at = run->input().row(0);
  for (const auto& [name, dim] : input.slots)
    for (int i = 0; i < dim; ++i)
      *at++ =
          i < dims[name] ? std::sin(static_cast<float>(name[0]) + 3.0f * static_cast<float>(i)) : 0;
  for (int i = 0; i < input.dense; ++i) *at++ = 0.5f + static_cast<float>(i);
  if (model.uses_linear()) run->linear()[0] = 0.25f;
  run->Forward(params.data(), {});
  return run->logits()[0];
}

// A grown model with the old one's parameters says the same where what is new is 0.
void ExpectCarriedOver(const ModelConfig& config, const Input& before, const Input& after) {
  SCOPED_TRACE(fmt::format("kind {} rank {} structure {}", static_cast<int>(config.kind),
                           config.cross_rank, static_cast<int>(config.cross_structure)));
  const auto old = MakeModel(config, before), grown = MakeModel(config, after);
  const std::vector<float> old_params = RandomFloats(old->param_count(), 5);
  const std::vector<int64_t> match = MatchParams(*old, *grown);
  ASSERT_EQ(static_cast<int64_t>(match.size()), grown->param_count());
  std::set<int64_t> carried;
  std::vector<float> params(match.size(), 0.0f);
  for (size_t i = 0; i < match.size(); ++i) {
    if (match[i] < 0) continue;
    EXPECT_TRUE(carried.insert(match[i]).second);
    params[i] = old_params[static_cast<size_t>(match[i])];
  }
  EXPECT_EQ(static_cast<int64_t>(carried.size()), old->param_count());
  const float want = LogitOf(*old, before, before, old_params);
  EXPECT_NE(want, 0);
  EXPECT_NEAR(LogitOf(*grown, after, before, params), want, 1e-4 * std::abs(want) + 1e-5);
}

TEST(ParamMap, NewSlotsAnywhereLeaveTheOthersTheirParameters) {
  const Input before{{{"b", 4}, {"d", 4}, {"f", 4}}};
  for (const ModelConfig& config : Configs())
    for (const Input& after : {Input{{{"b", 4}, {"d", 4}, {"f", 4}, {"g", 4}}},
                               Input{{{"a", 4}, {"b", 4}, {"d", 4}, {"f", 4}}},
                               Input{{{"b", 4}, {"c", 4}, {"d", 4}, {"e", 4}, {"f", 4}}},
                               Input{{{"b", 4}, {"c", 2}, {"d", 4}, {"f", 4}}},
                               Input{{{"b", 4}, {"c", 6}, {"d", 4}, {"f", 4}}}})
      ExpectCarriedOver(config, before, after);
}

TEST(ParamMap, WiderVectorsKeepTheirFirstColumns) {
  for (const ModelConfig& config : Configs()) {
    ExpectCarriedOver(config, {{{"b", 4}, {"d", 4}}}, {{{"b", 6}, {"d", 6}}});
    ExpectCarriedOver(config, {{{"b", 4}, {"d", 4}}}, {{{"b", 4}, {"d", 6}}});
    ExpectCarriedOver(config, {{{"b", 4}, {"d", 2}}}, {{{"b", 4}, {"c", 3}, {"d", 5}}});
    ExpectCarriedOver(config, {{{"b", 4}, {"d", 2}}}, {{{"b", 4}, {"d", 4}}});
  }
}

TEST(ParamMap, OrderOfSlotsDoesNotMatter) {
  for (const ModelConfig& config : Configs())
    ExpectCarriedOver(config, {{{"b", 4}, {"d", 3}, {"f", 2}}}, {{{"f", 2}, {"b", 4}, {"d", 3}}});
}

TEST(ParamMap, WithoutDenseColumns) {
  for (const ModelConfig& config : Configs()) {
    if (config.kind == ModelKind::kLr) continue;  // the linear weights alone
    ExpectCarriedOver(config, {{{"b", 4}, {"d", 4}}, 0}, {{{"a", 4}, {"b", 6}, {"d", 4}}, 0});
  }
}

TEST(ParamMap, TheSameModelMatchesInPlace) {
  const Input input{{{"b", 4}, {"d", 3}}};
  for (const ModelConfig& config : Configs()) {
    const auto model = MakeModel(config, input);
    const std::vector<int64_t> match = MatchParams(*model, *MakeModel(config, input));
    for (size_t i = 0; i < match.size(); ++i) ASSERT_EQ(match[i], static_cast<int64_t>(i));
  }
}

std::vector<std::string> Blocks(const Model& model) {
  std::vector<std::string> all;
  for (const ParamBlock& block : model.param_blocks())
    all.push_back(fmt::format("{} {}", block.name, fmt::join(block.shape(), "x")));
  return all;
}

TEST(ParamMap, BlocksHaveNamesAndShapes) {
  const Input input{{{"b", 4}, {"d", 4}}};
  EXPECT_THAT(Blocks(*MakeModel({.kind = ModelKind::kDeepFm, .hidden = {7, 5}}, input)),
              ElementsAre("deep.0.weight 10x7", "deep.0.bias 7", "deep.1.weight 7x5",
                          "deep.1.bias 5", "head.weight 5x1", "wide.weight 2x1", "logit.bias 1"));
  EXPECT_THAT(
      Blocks(*MakeModel(
          {.kind = ModelKind::kDcnV2, .hidden = {7}, .cross_layers = 1, .cross_rank = 3}, input)),
      ElementsAre("cross.0.to_low 10x3", "cross.0.from_low 3x10", "cross.0.bias 10",
                  "deep.0.weight 10x7", "deep.0.bias 7", "logit.weight 17x1", "logit.bias 1"));
  EXPECT_THAT(Blocks(*MakeModel({.kind = ModelKind::kDlrm, .hidden = {7}, .bottom = {6}}, input)),
              ElementsAre("bottom.0.weight 2x6", "bottom.0.bias 6", "bottom.1.weight 6x4",
                          "bottom.1.bias 4", "top.0.weight 7x7", "top.0.bias 7", "logit.weight 7x1",
                          "logit.bias 1"));
}

}  // namespace
}  // namespace terrace
