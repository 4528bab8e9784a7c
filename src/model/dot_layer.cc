#include "model/dot_layer.h"

#include "device/dense_ops.h"

namespace terrace {
namespace {

PairVectors VectorsOf(const Tape& tape, const DotLayer::Options& options) {
  return {.first = options.has_first ? tape.Value(options.first) : ConstMatrix{},
          .slots = tape.Value(options.slots),
          .slot_count = options.slot_count,
          .dim = options.dim};
}

}  // namespace

std::vector<LayerInput*> DotLayer::inputs() {
  if (!options_.has_first) return {&options_.slots};
  return {&options_.first, &options_.slots};
}

void DotLayer::Forward(Tape& tape) const {
  Launch(*tape.stream, PairDots{.v = VectorsOf(tape, options_), .y = tape.value[options_.output]});
}

void DotLayer::Backward(Tape& tape) const {
  Launch(*tape.stream,
         PairDotsBackward{.v = VectorsOf(tape, options_),
                          .y_grad = tape.grad[options_.output],
                          .first_grad = options_.has_first ? tape.Grad(options_.first) : Matrix{},
                          .first_adds = options_.first.adds,
                          .slots_grad = tape.Grad(options_.slots),
                          .slots_add = options_.slots.adds});
}

}  // namespace terrace
