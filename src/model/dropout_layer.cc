#include "model/dropout_layer.h"

#include "base/random.h"
#include "device/dense_ops.h"

namespace terrace {

DropoutLayer::DropoutLayer(LayerInput input, TensorId output, double drop)
    : input_(input), output_(output), keep_(1 - drop) {}

// The output's number tells the layers of a model apart.
uint64_t DropoutLayer::Seed(const Tape& tape) const {
  return RandomBits(tape.dropout_seed, static_cast<uint64_t>(output_));
}

void DropoutLayer::Forward(Tape& tape) const {
  Launch(*tape.stream, Dropout{.x = tape.Value(input_),
                               .y = tape.value[output_],
                               .keep = Keep(tape),
                               .seed = Seed(tape),
                               .first_example = tape.first_example});
}

void DropoutLayer::Backward(Tape& tape) const {
  if (input_.grad_cols == 0) return;
  Launch(*tape.stream, Dropout{.x = tape.grad[output_],
                               .y = tape.Grad(input_),
                               .adds = input_.adds,
                               .keep = Keep(tape),
                               .seed = Seed(tape),
                               .first_example = tape.first_example});
}

}  // namespace terrace
