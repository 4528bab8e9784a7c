// The logit as a sum: bias + the linear sum of the rows + the outputs of the model's parts.
#pragma once

#include <string>
#include <vector>

#include "model/tape.h"

namespace terrace {

class LogitLayer : public Layer {
 public:
  // parts: [rows, 1] each, at most SumParts::kMaxParts of them. One parameter: the bias.
  LogitLayer(std::vector<LayerInput> parts, TensorId output, int64_t bias_param);

  std::string name() const override { return "logit"; }
  std::vector<LayerInput*> inputs() override;
  ParamRange params() const override { return {bias_param_, 1}; }
  std::vector<ParamBlock> blocks() const override { return {{"logit.bias", bias_param_, {{1}}}}; }
  void Init(uint64_t seed, float* params) const override;
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  std::vector<LayerInput> parts_;
  TensorId output_;
  int64_t bias_param_;
};

}  // namespace terrace
