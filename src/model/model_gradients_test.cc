// Every kind of model, in every variant, by finite differences.
#include <gtest/gtest.h>

#include "model/gradient_check.h"

namespace terrace {
namespace {

const ModelInputs kEqual = {.slot_dims = {3, 3, 3}, .slot_names = {}, .dense_columns = 0};
const ModelInputs kEqualDense = {.slot_dims = {3, 3, 3}, .slot_names = {}, .dense_columns = 2};
const ModelInputs kUnequal = {.slot_dims = {1, 4, 2}, .slot_names = {}, .dense_columns = 0};
const ModelInputs kUnequalDense = {.slot_dims = {1, 4, 2}, .slot_names = {}, .dense_columns = 3};
// Slots of dim 0 have a linear weight alone.
const ModelInputs kSomeVectors = {.slot_dims = {0, 3, 0, 3}, .slot_names = {}, .dense_columns = 0};
const ModelInputs kMixedDense = {
    .slot_dims = {2, 2, 0, 9, 1, 9}, .slot_names = {}, .dense_columns = 2};
const ModelInputs kNoVectors = {.slot_dims = {0, 0}, .slot_names = {}, .dense_columns = 3};

void Check(const ModelConfig& config, const ModelInputs& inputs) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(config.kind) << ", activation "
                                  << static_cast<int>(config.activation) << ", dense columns "
                                  << inputs.dense_columns << ", dropout " << config.dropout);
  ExpectRightGradients(Model::Make(config, inputs, &CpuDevice()), 3, 42);
}

ModelConfig Config(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.hidden = {5, 4};
  config.bottom = {4};
  config.activation = Activation::kTanh;
  return config;
}

// All activations, with and without dropout.
void CheckDeepVariants(ModelConfig config, const ModelInputs& inputs) {
  for (Activation activation : {Activation::kRelu, Activation::kTanh, Activation::kSigmoid}) {
    config.activation = activation;
    for (double dropout : {0.0, 0.4}) {
      config.dropout = dropout;
      Check(config, inputs);
    }
  }
}

TEST(ModelGradients, Lr) {
  Check(Config(ModelKind::kLr), kNoVectors);
  Check(Config(ModelKind::kLr), {.slot_dims = {0}, .slot_names = {}, .dense_columns = 0});
  Check(Config(ModelKind::kLr), kEqualDense);  // vectors that it leaves alone get a zero gradient
}

TEST(ModelGradients, Fm) {
  Check(Config(ModelKind::kFm), kEqual);
  Check(Config(ModelKind::kFm), kEqualDense);
  for (const ModelInputs& inputs : {kUnequal, kUnequalDense, kSomeVectors, kMixedDense})
    Check(Config(ModelKind::kFm), inputs);
}

TEST(ModelGradients, WideDeep) {
  CheckDeepVariants(Config(ModelKind::kWideDeep), kUnequal);
  CheckDeepVariants(Config(ModelKind::kWideDeep), kUnequalDense);
  Check(Config(ModelKind::kWideDeep), kSomeVectors);
  Check(Config(ModelKind::kWideDeep), kMixedDense);
  Check(Config(ModelKind::kWideDeep), kNoVectors);
}

TEST(ModelGradients, DeepFm) {
  CheckDeepVariants(Config(ModelKind::kDeepFm), kEqual);
  CheckDeepVariants(Config(ModelKind::kDeepFm), kEqualDense);
  CheckDeepVariants(Config(ModelKind::kDeepFm), kMixedDense);
  for (const ModelInputs& inputs : {kUnequal, kUnequalDense, kSomeVectors})
    Check(Config(ModelKind::kDeepFm), inputs);
}

TEST(ModelGradients, DcnV2) {
  for (CrossStructure structure : {CrossStructure::kParallel, CrossStructure::kStacked}) {
    for (int64_t rank : {0, 2}) {
      for (int64_t layers : {1, 2}) {
        ModelConfig config = Config(ModelKind::kDcnV2);
        config.cross_structure = structure;
        config.cross_rank = rank;
        config.cross_layers = layers;
        Check(config, kUnequal);
        CheckDeepVariants(config, kUnequalDense);
        config.hidden = {};
        Check(config, kUnequalDense);
      }
    }
  }
  Check(Config(ModelKind::kDcnV2), {.slot_dims = {}, .slot_names = {}, .dense_columns = 4});
}

TEST(ModelGradients, Dlrm) {
  CheckDeepVariants(Config(ModelKind::kDlrm), kEqual);
  CheckDeepVariants(Config(ModelKind::kDlrm), kEqualDense);
  CheckDeepVariants(Config(ModelKind::kDlrm), kUnequal);
  CheckDeepVariants(Config(ModelKind::kDlrm), kUnequalDense);
  ModelConfig bare = Config(ModelKind::kDlrm);
  bare.hidden = {};
  bare.bottom = {};
  Check(bare, kEqual);
  Check(bare, kEqualDense);
  Check(bare, kUnequal);
}

}  // namespace
}  // namespace terrace
