#include "model/dot_layer.h"

#include <algorithm>

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

void DotLayer::NameColumns(ColumnNames* names) const {
  std::vector<std::string> vectors;
  if (options_.has_first)
    vectors.push_back((*names)[options_.first.tensor][options_.first.begin].of);
  for (int64_t s = 0; s < options_.slot_count; ++s)
    vectors.push_back((*names)[options_.slots.tensor][options_.slots.begin + s * options_.dim].of);
  // In the order of PairColumn. A pair is the same whichever of the two comes first.
  for (size_t i = 1; i < vectors.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      (*names)[options_.output].push_back(
          {std::min(vectors[i], vectors[j]), std::max(vectors[i], vectors[j])});
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
