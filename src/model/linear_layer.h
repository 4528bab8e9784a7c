// Fully connected layer over the concatenation of its inputs, which is never made.
#pragma once

#include <string>
#include <vector>

#include "device/vector_math.h"
#include "model/tape.h"

namespace terrace {

// y = activation(x W + b). Parameters: W [columns of all inputs, width], then b [width].
class LinearLayer : public Layer {
 public:
  struct Options {
    std::string name;
    std::vector<LayerInput> inputs;
    TensorId output = -1;
    int64_t width = 1;  // of the output
    Activation activation = Activation::kNone;
    bool bias = true;
    bool zero_init = false;
    int64_t first_param = 0;
  };
  explicit LinearLayer(Options options);

  // Floats from options.first_param on that the layer will own.
  static int64_t ParamCount(const Options& options);

  std::string name() const override { return options_.name; }
  std::vector<LayerInput*> inputs() override;
  ParamRange params() const override { return {options_.first_param, ParamCount(options_)}; }
  std::vector<ParamBlock> blocks() const override;
  void NameColumns(ColumnNames* names) const override;
  void Init(uint64_t seed, float* params) const override;
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  bool is_dot() const { return options_.width == 1; }

  Options options_;
  int64_t in_cols_;  // of all inputs
};

}  // namespace terrace
