// Dropout with inverted scaling: off, and the identity, outside training.
#pragma once

#include <string>
#include <vector>

#include "model/tape.h"

namespace terrace {

class DropoutLayer : public Layer {
 public:
  // `drop`: the probability that a unit becomes 0.
  DropoutLayer(LayerInput input, TensorId output, double drop);

  std::string name() const override { return "dropout"; }
  std::vector<LayerInput*> inputs() override { return {&input_}; }
  void NameColumns(ColumnNames* names) const override {
    (*names)[output_] = NamesOf(*names, input_);
  }
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  uint64_t Seed(const Tape& tape) const;
  double Keep(const Tape& tape) const { return tape.training ? keep_ : 1; }

  LayerInput input_;
  TensorId output_;
  double keep_;
};

}  // namespace terrace
