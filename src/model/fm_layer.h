// Second-order part of a factorization machine over vectors of one dim.
#pragma once

#include <string>
#include <vector>

#include "model/tape.h"

namespace terrace {

class FmLayer : public Layer {
 public:
  // input: [rows, slots * dim]; output: [rows, 1].
  FmLayer(LayerInput input, int slots, int dim, TensorId output)
      : input_(input), slots_(slots), dim_(dim), output_(output) {}

  std::string name() const override { return "fm"; }
  std::vector<LayerInput*> inputs() override { return {&input_}; }
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  LayerInput input_;
  int slots_;
  int dim_;
  TensorId output_;
};

}  // namespace terrace
