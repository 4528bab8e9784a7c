// Puts layers together into a Model: gives out tensors and parameters, and decides at the end which
// layer writes a gradient and which add to it. Used while a model is made, by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/linear_layer.h"
#include "model/model.h"

namespace terrace {

class ModelBuilder {
 public:
  ModelBuilder(const ModelInputs& inputs, bool uses_linear, Device* device);

  // The model's inputs.
  LayerInput input() const { return Range(SliceRun::kInput, 0, model_->input_width()); }
  LayerInput vectors() const { return Range(SliceRun::kInput, 0, model_->embedding_width()); }
  LayerInput dense() const {
    return Range(SliceRun::kInput, model_->embedding_width(), model_->dense_columns());
  }
  LayerInput linear() const { return Range(SliceRun::kLinear, 0, 1); }

  TensorId NewTensor(int64_t width);
  TensorId NewScratch(int64_t width);  // for one layer's own use
  int64_t NewParams(int64_t count);    // returns the first one
  LayerInput All(TensorId tensor) const { return Range(tensor, 0, model_->tensor_width_[tensor]); }

  template <typename L, typename... Args>
  void Add(Args&&... args) {
    model_->layers_.push_back(std::make_unique<L>(std::forward<Args>(args)...));
  }
  // Fills in output (unless given) and first_param. Returns the output.
  LayerInput AddLinear(LinearLayer::Options options);

  std::unique_ptr<Model> Finish();

 private:
  static LayerInput Range(TensorId tensor, int64_t begin, int64_t cols) {
    return {.tensor = tensor, .begin = begin, .cols = cols};
  }
  void FixGradients();

  std::unique_ptr<Model> model_;
  std::vector<TensorId> scratch_;
};

}  // namespace terrace
