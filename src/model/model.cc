#include "model/model.h"

#include "base/error.h"
#include "base/random.h"
#include "device/dense_ops.h"

namespace terrace {
namespace {

// Rows of wide tensors start on a cache line; narrow ones are plain arrays.
int64_t Stride(int64_t width) {
  constexpr int64_t kLine = 16;
  return width < kLine ? width : (width + kLine - 1) / kLine * kLine;
}

}  // namespace

void Model::InitParams(uint64_t seed, float* params) const {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->Init(RandomBits(seed, i), params);
}

std::unique_ptr<SliceRun> Model::NewRun(int64_t max_rows) const {
  return std::unique_ptr<SliceRun>(new SliceRun(*this, max_rows));
}

SliceRun::SliceRun(const Model& model, int64_t max_rows) : model_(model), max_rows_(max_rows) {
  for (int64_t width : model.tensor_width_)
    values_.emplace_back(model.device_, max_rows * Stride(width));
  tape_.value.resize(values_.size());
  tape_.grad.resize(values_.size());
}

Matrix SliceRun::TensorIn(Buffer<float>& buffer, TensorId id) {
  const int64_t width = model_.tensor_width_[id];
  return {buffer.data(), tape_.rows, width, Stride(width)};
}

void SliceRun::Start(Stream* stream, int64_t rows) {
  TERRACE_CHECK(rows >= 0 && rows <= max_rows_);
  tape_.stream = stream;
  tape_.rows = rows;
  for (size_t id = 0; id < values_.size(); ++id)
    tape_.value[id] = TensorIn(values_[id], static_cast<TensorId>(id));
}

void SliceRun::Forward(const float* params, const TrainingPass& pass) {
  tape_.params = params;
  tape_.training = pass.training;
  tape_.dropout_seed = pass.dropout_seed;
  tape_.first_example = pass.first_example;
  for (const auto& layer : model_.layers_) layer->Forward(tape_);
}

void SliceRun::Backward(const float* logit_grad, Matrix input_grad, float* linear_grad,
                        float* param_grad) {
  TERRACE_CHECK(input_grad.rows == tape_.rows && input_grad.cols >= model_.embedding_width());
  if (grads_.empty()) {
    for (size_t id = 0; id < values_.size(); ++id)
      grads_.emplace_back(model_.device_, id < kLogit ? 0 : values_[id].size());
  }
  for (size_t id = kLogit; id < grads_.size(); ++id)
    tape_.grad[id] = TensorIn(grads_[id], static_cast<TensorId>(id));
  tape_.grad[kInput] = input_grad;
  tape_.grad[kLinear] = {linear_grad, tape_.rows, 1, 1};
  tape_.param_grad = param_grad;

  Launch(*tape_.stream,
         Copy{.from = logit_grad, .to = tape_.grad[kLogit].data, .size = tape_.rows});
  for (auto layer = model_.layers_.rbegin(); layer != model_.layers_.rend(); ++layer)
    (*layer)->Backward(tape_);
  if (model_.input_grad_unused_)
    Launch(*tape_.stream, Clear{.y = input_grad.Columns(0, model_.embedding_width())});
}

int64_t SliceRun::bytes() const {
  int64_t floats = 0;
  for (const auto& buffer : values_) floats += buffer.size();
  for (const auto& buffer : grads_) floats += buffer.size();
  return floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace terrace
