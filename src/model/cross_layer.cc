#include "model/cross_layer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "device/dense_ops.h"
#include "device/gemm.h"
#include "model/init.h"

namespace terrace {

CrossLayer::CrossLayer(Options options) : options_(std::move(options)) {
  TERRACE_CHECK(options_.x0.cols == options_.xl.cols);
  TERRACE_CHECK(!same_input() || options_.x0.begin == options_.xl.begin);
}

int64_t CrossLayer::ParamCount(int64_t width, int64_t rank) {
  return (rank > 0 ? 2 * width * rank : width * width) + width;
}

std::vector<LayerInput*> CrossLayer::inputs() {
  if (same_input()) return {&options_.x0};
  return {&options_.x0, &options_.xl};
}

template <typename T>
CrossLayer::Params<T> CrossLayer::In(T* base) const {
  T* const begin = base + options_.first_param;
  const int64_t width = options_.x0.cols;
  const int64_t rank = options_.rank;
  if (rank == 0) return {{}, {begin, width, width, width}, begin + width * width};
  return {{begin, width, rank, rank},
          {begin + width * rank, rank, width, width},
          begin + 2 * width * rank};
}

std::vector<ParamBlock> CrossLayer::blocks() const {
  const int64_t width = options_.x0.cols;
  const int64_t rank = options_.rank;
  const ParamAxis in{width, {options_.xl}};
  const ParamAxis out{width, {options_.x0}};  // unit i is multiplied by column i of x0
  const ParamRange all = params();
  std::vector<ParamBlock> blocks;
  if (rank > 0) {
    blocks.push_back({options_.name + ".to_low", all.begin, {in, {rank}}});
    blocks.push_back({options_.name + ".from_low", all.begin + width * rank, {{rank}, out}});
  } else {
    blocks.push_back({options_.name + ".weight", all.begin, {in, out}});
  }
  blocks.push_back({options_.name + ".bias", all.begin + all.size - width, {out}});
  return blocks;
}

void CrossLayer::NameColumns(ColumnNames* names) const {
  (*names)[options_.output] = NamesOf(*names, options_.x0);
}

void CrossLayer::Init(uint64_t seed, float* params) const {
  const Params<float> p = In(params);
  if (options_.rank > 0)
    InitWeights(RandomBits(seed, 1), p.to_low.rows, p.to_low.cols, Activation::kNone,
                p.to_low.data);
  InitWeights(RandomBits(seed, 0), p.to_unit.rows, p.to_unit.cols, Activation::kNone,
              p.to_unit.data);
  std::fill_n(p.bias, options_.x0.cols, 0.0f);
}

void CrossLayer::Forward(Tape& tape) const {
  Stream& stream = *tape.stream;
  const Params<const float> p = In(tape.params);
  const ConstMatrix xl = tape.Value(options_.xl);
  const Matrix unit = tape.value[options_.unit];
  if (options_.rank > 0) {
    const Matrix low = tape.value[options_.low];
    Gemm(stream, {.a = xl, .b = p.to_low, .c = low});
    Gemm(stream, {.a = low, .b = p.to_unit, .c = unit});
  } else {
    Gemm(stream, {.a = xl, .b = p.to_unit, .c = unit});
  }
  Launch(stream, CrossForward{.x0 = tape.Value(options_.x0),
                              .xl = xl,
                              .bias = p.bias,
                              .u = unit,
                              .y = tape.value[options_.output]});
}

void CrossLayer::Backward(Tape& tape) const {
  Stream& stream = *tape.stream;
  const Params<const float> p = In(tape.params);
  const Params<float> p_grad = In(tape.param_grad);
  const ConstMatrix xl = tape.Value(options_.xl);
  const Matrix unit_grad = tape.grad[options_.unit];
  const LayerInput& wanted = same_input() ? options_.x0 : options_.xl;
  Launch(stream,
         CrossBackward{.x0 = tape.Value(options_.x0),
                       .u = tape.value[options_.unit],
                       .y_grad = tape.grad[options_.output],
                       .u_grad = unit_grad,
                       .bias_grad = p_grad.bias,
                       .x0_grad = options_.x0.grad_cols > 0 ? tape.Grad(options_.x0) : Matrix{},
                       .x0_adds = options_.x0.adds,
                       .xl_grad = same_input() ? Matrix{} : tape.Grad(options_.xl),
                       .xl_adds = options_.xl.adds});

  // What is left goes through the matrix, and is added to what CrossBackward put.
  Matrix below = unit_grad;  // gradient of xl times `matrix`
  ConstMatrix matrix = p.to_unit;
  if (options_.rank > 0) {
    const Matrix low_grad = tape.grad[options_.low];
    Gemm(stream,
         {.a = tape.value[options_.low], .b = unit_grad, .c = p_grad.to_unit, .transpose_a = true});
    Gemm(stream, {.a = unit_grad, .b = p.to_unit, .c = low_grad, .transpose_b = true});
    Gemm(stream, {.a = xl, .b = low_grad, .c = p_grad.to_low, .transpose_a = true});
    below = low_grad;
    matrix = p.to_low;
  } else {
    Gemm(stream, {.a = xl, .b = unit_grad, .c = p_grad.to_unit, .transpose_a = true});
  }
  if (wanted.grad_cols == 0) return;
  matrix.rows = wanted.grad_cols;
  Gemm(stream, {.a = below, .b = matrix, .c = tape.Grad(wanted), .transpose_b = true, .beta = 1});
}

}  // namespace terrace
