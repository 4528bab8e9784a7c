// A CTR model: pooled embeddings and dense numbers in, a logit out.
//
// The model never sees keys. Its input tensor is [rows, embedding_width + dense_columns]: the
// pooled vectors of all slots, then the dense columns. Constant after construction; Forward and
// Backward may run on several threads, each with its own SliceRun.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "device/device.h"
#include "device/vector_math.h"
#include "model/tape.h"

namespace terrace {

enum class ModelKind { kLr, kFm, kWideDeep, kDeepFm, kDcnV2, kDlrm };
enum class CrossStructure { kParallel, kStacked };

// [model] of the config.
struct ModelConfig {
  ModelKind kind = ModelKind::kDeepFm;
  std::vector<int64_t> hidden = {128, 64};  // deep part (DLRM: top MLP)
  std::vector<int64_t> bottom = {64};       // DLRM: bottom MLP before its last layer (the dim)
  Activation activation = Activation::kRelu;
  double dropout = 0;
  int64_t cross_layers = 2;
  int64_t cross_rank = 0;  // 0: full matrices
  CrossStructure cross_structure = CrossStructure::kParallel;

  void Visit(ConfigVisitor& v);
};

// What the rows bring: the dim of each slot in the order of the input's columns.
struct ModelInputs {
  std::vector<int> slot_dims;           // 0: the slot has a linear weight alone
  std::vector<std::string> slot_names;  // of all slots, or of none
  int dense_columns = 0;
  std::vector<std::string> dense_names = {};  // the same
};

// Does this kind use the rows' linear weight / their vector?
bool UsesLinear(ModelKind kind);
bool UsesVectors(ModelKind kind);

// The buffers of one slice's pass. Made by Model::NewRun; belongs to one thread.
class SliceRun;

class Model {
 public:
  // Throws Error(kUsage) where the kind does not allow the inputs (FM without any vector ...).
  static std::unique_ptr<Model> Make(const ModelConfig& config, const ModelInputs& inputs,
                                     Device* device);

  int64_t embedding_width() const { return embedding_width_; }
  int64_t dense_columns() const { return dense_columns_; }
  int64_t input_width() const { return embedding_width_ + dense_columns_; }
  bool uses_linear() const { return uses_linear_; }
  int64_t param_count() const { return param_count_; }
  // Fills [param_count], deterministic in `seed`.
  void InitParams(uint64_t seed, float* params) const;
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  // What the parameters are: all of them, in their order.
  std::vector<ParamBlock> param_blocks() const;
  // What the columns of each tensor are, which the axes of blocks refer to; none of tensors that no
  // layer with parameters reads.
  ColumnNames column_names() const;

  // A pass of at most max_rows examples; the model outlives it.
  std::unique_ptr<SliceRun> NewRun(int64_t max_rows) const;

 private:
  friend class ModelBuilder;
  friend class SliceRun;
  Device* device_ = nullptr;
  ModelInputs inputs_;
  int64_t embedding_width_ = 0;
  int64_t dense_columns_ = 0;
  bool uses_linear_ = false;
  int64_t param_count_ = 0;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<int64_t> tensor_width_;  // by TensorId; input, linear and logit come first
  bool input_grad_unused_ = false;     // no layer reads the vectors: their gradient is cleared
};

class SliceRun {
 public:
  static constexpr TensorId kInput = 0;   // [rows, input_width]
  static constexpr TensorId kLinear = 1;  // [rows, 1]: the sum of the rows' linear weights
  static constexpr TensorId kLogit = 2;   // [rows, 1]

  // Sets the number of examples of this pass. Fill input() and linear() after it.
  void Start(Stream* stream, int64_t rows);
  Matrix input() const { return tape_.value[kInput]; }
  float* linear() const { return tape_.value[kLinear].data; }  // null if the model has none
  const float* logits() const { return tape_.value[kLogit].data; }

  struct TrainingPass {
    bool training = false;
    uint64_t dropout_seed = 0;
    int64_t first_example = 0;
  };
  void Forward(const float* params, const TrainingPass& pass);
  // After Forward. logit_grad: [rows]. Writes the gradient of the embedding columns to input_grad
  // (any stride), of the linear sum to linear_grad (ignored if the model has none), and of the
  // parameters to param_grad [param_count]. None of them need be cleared before.
  void Backward(const float* logit_grad, Matrix input_grad, float* linear_grad, float* param_grad);

  // Memory of activations and gradients.
  int64_t bytes() const;

 private:
  friend class Model;
  SliceRun(const Model& model, int64_t max_rows);
  Matrix TensorIn(Buffer<float>& buffer, TensorId id);

  const Model& model_;
  const int64_t max_rows_;
  Tape tape_;
  std::vector<Buffer<float>> values_;  // by TensorId
  std::vector<Buffer<float>> grads_;   // made by the first Backward
};

}  // namespace terrace
