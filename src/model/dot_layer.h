// DLRM's interaction (Naumov et al. 2019): the dots of all pairs of an example's vectors.
#pragma once

#include <string>
#include <vector>

#include "model/tape.h"

namespace terrace {

class DotLayer : public Layer {
 public:
  struct Options {
    bool has_first = false;
    LayerInput first = {};  // [rows, dim], e.g. the bottom MLP's output
    LayerInput slots;       // [rows, slot_count * dim]
    int slot_count = 0;
    int dim = 0;
    TensorId output = -1;  // [rows, Width(vectors)]
  };
  explicit DotLayer(const Options& options) : options_(options) {}

  // Pairs of n vectors.
  static int64_t Width(int64_t n) { return n * (n - 1) / 2; }

  std::string name() const override { return "dots"; }
  std::vector<LayerInput*> inputs() override;
  void NameColumns(ColumnNames* names) const override;
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  Options options_;
};

}  // namespace terrace
