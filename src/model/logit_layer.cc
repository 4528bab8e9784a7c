#include "model/logit_layer.h"

#include <utility>

#include "base/error.h"
#include "device/dense_ops.h"

namespace terrace {

LogitLayer::LogitLayer(std::vector<LayerInput> parts, TensorId output, int64_t bias_param)
    : parts_(std::move(parts)), output_(output), bias_param_(bias_param) {
  TERRACE_CHECK(parts_.size() <= SumParts::kMaxParts);
  for (const LayerInput& part : parts_) TERRACE_CHECK(part.cols == 1);
}

std::vector<LayerInput*> LogitLayer::inputs() {
  std::vector<LayerInput*> all;
  for (LayerInput& part : parts_) all.push_back(&part);
  return all;
}

void LogitLayer::Init(uint64_t, float* params) const { params[bias_param_] = 0; }

void LogitLayer::Forward(Tape& tape) const {
  SumParts sum{.rows = tape.rows,
               .bias = tape.params + bias_param_,
               .parts = static_cast<int>(parts_.size()),
               .y = tape.value[output_].data};
  for (size_t i = 0; i < parts_.size(); ++i) sum.part[i] = tape.Value(parts_[i]).data;
  Launch(*tape.stream, sum);
}

void LogitLayer::Backward(Tape& tape) const {
  const Matrix y_grad = tape.grad[output_];
  Launch(*tape.stream,
         ActivateBackward{.grad = y_grad, .bias_grad = tape.param_grad + bias_param_});
  for (const LayerInput& part : parts_) {
    TERRACE_CHECK(!part.adds);
    Launch(*tape.stream, Copy{.from = y_grad.data, .to = tape.Grad(part).data, .size = tape.rows});
  }
}

}  // namespace terrace
