// DCN-v2's cross layer (Wang et al. 2021): y = x0 * (xl W + b) + xl, W full or of low rank.
#pragma once

#include <string>
#include <vector>

#include "model/tape.h"

namespace terrace {

class CrossLayer : public Layer {
 public:
  // Parameters: W [width, width], or V [width, rank] then C [rank, width] with W = V C; then b.
  struct Options {
    std::string name = "cross";
    LayerInput x0;
    LayerInput xl;         // may be x0 itself (the first layer)
    int64_t rank = 0;      // 0: full
    TensorId low = -1;     // [rows, rank]: xl V; only if rank > 0
    TensorId unit = -1;    // [rows, width]: xl W + b
    TensorId output = -1;  // [rows, width]
    int64_t first_param = 0;
  };
  explicit CrossLayer(Options options);

  static int64_t ParamCount(int64_t width, int64_t rank);

  std::string name() const override { return options_.name; }
  std::vector<LayerInput*> inputs() override;
  ParamRange params() const override {
    return {options_.first_param, ParamCount(options_.x0.cols, options_.rank)};
  }
  std::vector<ParamBlock> blocks() const override;
  void NameColumns(ColumnNames* names) const override;
  void Init(uint64_t seed, float* params) const override;
  void Forward(Tape& tape) const override;
  void Backward(Tape& tape) const override;

 private:
  // Where the parameters, or their gradients, lie in the flat array that starts at T* base.
  template <typename T>
  struct Params {
    MatrixView<T> to_low;   // V; no data if full
    MatrixView<T> to_unit;  // C, or W
    T* bias;
  };
  template <typename T>
  Params<T> In(T* base) const;
  bool same_input() const { return options_.xl.tensor == options_.x0.tensor; }

  Options options_;
};

}  // namespace terrace
