// Each layer's gradients by finite differences, in models of a few layers put together by hand.
#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "model/cross_layer.h"
#include "model/dot_layer.h"
#include "model/dropout_layer.h"
#include "model/fm_layer.h"
#include "model/gradient_check.h"
#include "model/linear_layer.h"
#include "model/logit_layer.h"
#include "model/model_builder.h"

namespace terrace {
namespace {

// Two slots of dim 3 and two dense columns.
ModelBuilder SmallBuilder(bool linear = false) {
  return ModelBuilder({.slot_dims = {3, 3}, .slot_names = {}, .dense_columns = 2}, linear,
                      &CpuDevice());
}

void AddLogit(ModelBuilder& b, std::vector<LayerInput> inputs) {
  b.AddLinear({.name = "logit", .inputs = std::move(inputs), .output = SliceRun::kLogit});
}

TEST(LinearLayer, GradientsAreRightForEveryActivation) {
  for (Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kTanh, Activation::kSigmoid}) {
    for (int64_t width : {1, 2, 5}) {
      ModelBuilder b = SmallBuilder();
      AddLogit(b, {b.AddLinear({.name = "hidden",
                                .inputs = {b.input()},
                                .width = width,
                                .activation = activation})});
      ExpectRightGradients(b.Finish(), 4, 10 + width);
    }
  }
}

TEST(LinearLayer, ReadsSeveralInputsAsOne) {
  ModelBuilder b = SmallBuilder();
  const LayerInput hidden = b.AddLinear(
      {.name = "a", .inputs = {b.dense()}, .width = 3, .activation = Activation::kTanh});
  const LayerInput joined = b.AddLinear({.name = "b",
                                         .inputs = {b.vectors(), hidden, b.dense()},
                                         .width = 4,
                                         .activation = Activation::kSigmoid});
  AddLogit(b, {joined, hidden, b.vectors()});
  ExpectRightGradients(b.Finish(), 3, 1);
}

TEST(LinearLayer, WorksWithoutBias) {
  ModelBuilder b = SmallBuilder();
  const LayerInput hidden = b.AddLinear({.name = "a",
                                         .inputs = {b.input()},
                                         .width = 3,
                                         .activation = Activation::kTanh,
                                         .bias = false});
  AddLogit(b, {hidden});
  ExpectRightGradients(b.Finish(), 3, 1);
}

// A tensor that three layers read: one writes its gradient, two add.
TEST(ModelBuilder, SumsTheGradientsOfAllReaders) {
  ModelBuilder b = SmallBuilder();
  const LayerInput shared = b.AddLinear(
      {.name = "shared", .inputs = {b.input()}, .width = 4, .activation = Activation::kTanh});
  std::vector<LayerInput> readers;
  for (int i = 0; i < 3; ++i)
    readers.push_back(b.AddLinear(
        {.name = "reader", .inputs = {shared}, .width = 2, .activation = Activation::kSigmoid}));
  AddLogit(b, readers);
  ExpectRightGradients(b.Finish(), 3, 1);
}

TEST(ModelBuilder, RefusesALayerWhoseOutputNobodyReads) {
  ModelBuilder b = SmallBuilder();
  b.AddLinear({.name = "lost", .inputs = {b.input()}, .width = 4});
  AddLogit(b, {b.input()});
  EXPECT_THROW(b.Finish(), Error);
}

TEST(DropoutLayer, GradientsAreRightForTheMaskOfTheStep) {
  ModelBuilder b = SmallBuilder();
  const LayerInput hidden = b.AddLinear(
      {.name = "a", .inputs = {b.input()}, .width = 8, .activation = Activation::kTanh});
  const TensorId first = b.NewTensor(8);
  const TensorId second = b.NewTensor(8);
  b.Add<DropoutLayer>(hidden, first, 0.5);
  b.Add<DropoutLayer>(hidden, second, 0.3);
  AddLogit(b, {b.All(first), b.All(second)});
  ExpectRightGradients(b.Finish(), 5, 1);
}

TEST(FmLayer, GradientsAreRightAloneAndBesideAnotherReader) {
  for (bool beside : {false, true}) {
    ModelBuilder b = SmallBuilder(true);
    const TensorId pooled = b.NewTensor(1);
    b.Add<FmLayer>(b.vectors(), 2, 3, pooled);
    std::vector<LayerInput> parts = {b.linear(), b.All(pooled)};
    if (beside) parts.push_back(b.AddLinear({.name = "beside", .inputs = {b.input()}}));
    b.Add<LogitLayer>(parts, SliceRun::kLogit, b.NewParams(1));
    ExpectRightGradients(b.Finish(), 4, 1);
  }
}

void CheckCross(int64_t rank, int layers) {
  ModelBuilder b = SmallBuilder();
  const LayerInput x0 = b.input();
  LayerInput xl = x0;
  for (int i = 0; i < layers; ++i) {
    CrossLayer::Options cross{.x0 = x0, .xl = xl, .rank = rank};
    if (rank > 0) cross.low = b.NewScratch(rank);
    cross.unit = b.NewScratch(x0.cols);
    cross.output = b.NewTensor(x0.cols);
    cross.first_param = b.NewParams(CrossLayer::ParamCount(x0.cols, rank));
    b.Add<CrossLayer>(cross);
    xl = b.All(cross.output);
  }
  AddLogit(b, {xl});
  ExpectRightGradients(b.Finish(), 3, static_cast<uint64_t>(layers));
}

TEST(CrossLayer, GradientsAreRightForFullMatrices) {
  CheckCross(0, 1);
  CheckCross(0, 3);
}

TEST(CrossLayer, GradientsAreRightForLowRank) {
  CheckCross(2, 1);
  CheckCross(3, 3);
}

TEST(DotLayer, GradientsAreRightWithAndWithoutAFirstVector) {
  for (bool has_first : {false, true}) {
    ModelBuilder b = SmallBuilder();
    DotLayer::Options dots{.has_first = has_first, .slots = b.vectors(), .slot_count = 2, .dim = 3};
    if (has_first)
      dots.first = b.AddLinear(
          {.name = "first", .inputs = {b.dense()}, .width = 3, .activation = Activation::kTanh});
    dots.output = b.NewTensor(DotLayer::Width(has_first ? 3 : 2));
    b.Add<DotLayer>(dots);
    std::vector<LayerInput> top = {b.All(dots.output), b.vectors()};
    if (has_first) top.push_back(dots.first);
    AddLogit(b, top);
    ExpectRightGradients(b.Finish(), 4, 1);
  }
}

}  // namespace
}  // namespace terrace
