#include "model/model_builder.h"

#include <algorithm>

#include "base/error.h"

namespace terrace {

ModelBuilder::ModelBuilder(const ModelInputs& inputs, bool uses_linear, Device* device)
    : model_(std::make_unique<Model>()) {
  model_->device_ = device;
  model_->inputs_ = inputs;
  for (int dim : inputs.slot_dims) model_->embedding_width_ += dim;
  model_->dense_columns_ = inputs.dense_columns;
  model_->uses_linear_ = uses_linear;
  NewTensor(model_->input_width());
  NewTensor(uses_linear ? 1 : 0);
  NewTensor(1);
}

TensorId ModelBuilder::NewTensor(int64_t width) {
  model_->tensor_width_.push_back(width);
  return static_cast<TensorId>(model_->tensor_width_.size()) - 1;
}

TensorId ModelBuilder::NewScratch(int64_t width) {
  scratch_.push_back(NewTensor(width));
  return scratch_.back();
}

int64_t ModelBuilder::NewParams(int64_t count) {
  const int64_t first = model_->param_count_;
  model_->param_count_ += count;
  return first;
}

LayerInput ModelBuilder::AddLinear(LinearLayer::Options options) {
  if (options.output < 0) options.output = NewTensor(options.width);
  options.first_param = NewParams(LinearLayer::ParamCount(options));
  const TensorId output = options.output;
  Add<LinearLayer>(std::move(options));
  return All(output);
}

// Walks the layers as the backward pass does and notes which columns have a gradient already.
void ModelBuilder::FixGradients() {
  std::vector<std::vector<uint8_t>> written;
  for (int64_t width : model_->tensor_width_) written.emplace_back(width, 0);
  // Nobody asks for the gradient of the dense columns.
  written[SliceRun::kInput].resize(model_->embedding_width());
  for (auto layer = model_->layers_.rbegin(); layer != model_->layers_.rend(); ++layer) {
    for (LayerInput* in : (*layer)->inputs()) {
      const auto columns = static_cast<int64_t>(written[in->tensor].size());
      const int64_t end = std::min(in->begin + in->cols, columns);
      in->grad_cols = std::max<int64_t>(end - in->begin, 0);
      if (in->grad_cols == 0) continue;
      const auto begin = written[in->tensor].begin() + in->begin;
      const int64_t before = std::count(begin, begin + in->grad_cols, 1);
      TERRACE_CHECK(before == 0 || before == in->grad_cols);
      in->adds = before > 0;
      std::fill(begin, begin + in->grad_cols, 1);
    }
  }
  for (TensorId id : scratch_) written[id].clear();
  written[SliceRun::kLogit].clear();
  const auto has_gap = [](const auto& columns) { return std::ranges::count(columns, 0) > 0; };
  model_->input_grad_unused_ = has_gap(written[SliceRun::kInput]);
  written[SliceRun::kInput].clear();
  TERRACE_CHECK(std::ranges::none_of(written, has_gap));
}

std::unique_ptr<Model> ModelBuilder::Finish() {
  FixGradients();
  return std::move(model_);
}

}  // namespace terrace
