#include "model/linear_layer.h"

#include <algorithm>
#include <utility>

#include "device/dense_ops.h"
#include "device/gemm.h"
#include "model/init.h"

namespace terrace {
namespace {

int64_t TotalColumns(const std::vector<LayerInput>& inputs) {
  int64_t cols = 0;
  for (const LayerInput& in : inputs) cols += in.cols;
  return cols;
}

}  // namespace

LinearLayer::LinearLayer(Options options)
    : options_(std::move(options)), in_cols_(TotalColumns(options_.inputs)) {}

int64_t LinearLayer::ParamCount(const Options& options) {
  return (TotalColumns(options.inputs) + (options.bias ? 1 : 0)) * options.width;
}

std::vector<LayerInput*> LinearLayer::inputs() {
  std::vector<LayerInput*> all;
  for (LayerInput& in : options_.inputs) all.push_back(&in);
  return all;
}

std::vector<ParamBlock> LinearLayer::blocks() const {
  const int64_t width = options_.width;
  const int64_t begin = options_.first_param;
  std::vector<ParamBlock> blocks;
  blocks.push_back({options_.name + ".weight", begin, {{in_cols_, options_.inputs}, {width}}});
  if (options_.bias)
    blocks.push_back({options_.name + ".bias", begin + in_cols_ * width, {{width}}});
  return blocks;
}

void LinearLayer::NameColumns(ColumnNames* names) const {
  for (int64_t unit = 0; unit < options_.width; ++unit)
    (*names)[options_.output].push_back({"layer " + options_.name, "", unit});
}

void LinearLayer::Init(uint64_t seed, float* params) const {
  float* const weights = params + options_.first_param;
  std::fill_n(weights, ParamCount(options_), 0.0f);
  if (!options_.zero_init)
    InitWeights(seed, in_cols_, options_.width, options_.activation, weights);
}

void LinearLayer::Forward(Tape& tape) const {
  Stream& stream = *tape.stream;
  const Matrix y = tape.value[options_.output];
  const int64_t width = options_.width;
  const float* weights = tape.params + options_.first_param;
  const float* const bias = options_.bias ? weights + in_cols_ * width : nullptr;
  bool adds = false;
  for (const LayerInput& in : options_.inputs) {
    const ConstMatrix x = tape.Value(in);
    if (is_dot())
      Launch(stream, RowDot{.x = x, .w = weights, .y = y.data, .adds = adds});
    else
      Gemm(stream, {.a = x, .b = {weights, in.cols, width, width}, .c = y, .beta = adds ? 1.f : 0});
    weights += in.cols * width;
    adds = true;
  }
  Launch(stream, BiasActivate{.y = y, .bias = bias, .activation = options_.activation});
}

void LinearLayer::Backward(Tape& tape) const {
  Stream& stream = *tape.stream;
  const Matrix y_grad = tape.grad[options_.output];
  const int64_t width = options_.width;
  const float* weights = tape.params + options_.first_param;
  float* weight_grad = tape.param_grad + options_.first_param;
  Launch(stream,
         ActivateBackward{.y = tape.value[options_.output],
                          .grad = y_grad,
                          .bias_grad = options_.bias ? weight_grad + in_cols_ * width : nullptr,
                          .activation = options_.activation});
  for (const LayerInput& in : options_.inputs) {
    const ConstMatrix x = tape.Value(in);
    if (is_dot()) {
      Launch(stream, RowDotWeightGrad{.x = x, .y_grad = y_grad.data, .w_grad = weight_grad});
      if (in.grad_cols > 0)
        Launch(stream,
               RowDotInputGrad{
                   .y_grad = y_grad.data, .w = weights, .x_grad = tape.Grad(in), .adds = in.adds});
    } else {
      Gemm(stream,
           {.a = x, .b = y_grad, .c = {weight_grad, in.cols, width, width}, .transpose_a = true});
      if (in.grad_cols > 0)
        Gemm(stream, {.a = y_grad,
                      .b = {weights, in.grad_cols, width, width},
                      .c = tape.Grad(in),
                      .transpose_b = true,
                      .beta = in.adds ? 1.f : 0});
    }
    weights += in.cols * width;
    weight_grad += in.cols * width;
  }
}

}  // namespace terrace
