// Gives slot vectors of different dims the widest one's dim, by zeros at their end: a product of
// two vectors is then over the leading numbers that both have. Only models whose dims differ have
// this layer, and so the copy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/tape.h"

namespace terrace {

class PadLayer : public Layer {
 public:
  // `count` vectors of one dim side by side.
  struct Run {
    int dim = 0;
    int count = 0;
  };
  // input: the runs one after the other; output: [rows, vectors of all runs * dim].
  PadLayer(LayerInput input, std::vector<Run> runs, int dim, TensorId output)
      : input_(input), runs_(std::move(runs)), dim_(dim), output_(output) {}

  std::string name() const override { return "pad"; }
  std::vector<LayerInput*> inputs() override { return {&input_}; }
  void NameColumns(ColumnNames* names) const override;
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  LayerInput input_;
  std::vector<Run> runs_;
  int dim_;
  TensorId output_;
};

}  // namespace terrace
