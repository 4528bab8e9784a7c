#include "model/fm_layer.h"

#include "device/dense_ops.h"

namespace terrace {

void FmLayer::Forward(Tape& tape) const {
  Launch(
      *tape.stream,
      FmPool{.x = tape.Value(input_), .slots = slots_, .dim = dim_, .y = tape.value[output_].data});
}

void FmLayer::Backward(Tape& tape) const {
  Launch(*tape.stream, FmPoolBackward{.x = tape.Value(input_),
                                      .slots = slots_,
                                      .dim = dim_,
                                      .y_grad = tape.grad[output_].data,
                                      .x_grad = tape.Grad(input_),
                                      .adds = input_.adds});
}

}  // namespace terrace
