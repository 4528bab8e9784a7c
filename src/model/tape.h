// A model is a list of layers over named tensors; this is what a layer sees.
//
// All tensors are [examples of a slice, width]. Parameters of all layers lie in one flat array; so
// do their gradients, one array a slice. Layers hold no state that changes: activations live in the
// Tape (one for each thread), so that threads run slices side by side.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace terrace {

using TensorId = int;

// A range of the parameters that a layer owns.
struct ParamRange {
  int64_t begin = 0;
  int64_t size = 0;
};

// A range of columns of a tensor, as a layer reads it. The last two are fixed by ModelBuilder: of
// all layers that read a column, the one whose backward runs first writes the column's gradient,
// the others add to it, so that nothing has to be cleared.
struct LayerInput {
  TensorId tensor = -1;
  int64_t begin = 0;
  int64_t cols = 0;
  int64_t grad_cols = 0;  // leading columns whose gradient is wanted
  bool adds = false;
};

// What a column of a tensor is; the same name means the same in two models.
struct ColumnName {
  std::string of;      // the slot, the dense column or the layer that it comes from
  std::string with;    // a product of two vectors: the other one's
  int64_t number = 0;  // within a slot's vector, or of a layer's unit
  auto operator<=>(const ColumnName&) const = default;
};
using ColumnNames = std::vector<std::vector<ColumnName>>;  // by TensorId

std::vector<ColumnName> NamesOf(const ColumnNames& names, const LayerInput& columns);

// One dimension of a block of parameters: an element for each of these columns, side by side, or
// plain numbers if there are none.
struct ParamAxis {
  int64_t size = 0;
  std::vector<LayerInput> columns = {};
};

// Parameters that belong together, e.g. a layer's matrix. The last axis is the innermost.
struct ParamBlock {
  std::string name;  // "deep.0.weight": no other block of the model has it
  int64_t begin = 0;
  std::vector<ParamAxis> axes;

  std::vector<int64_t> shape() const;
  int64_t size() const;
};

// One forward + backward pass of one slice. Belongs to one thread.
struct Tape {
  Stream* stream = nullptr;
  int64_t rows = 0;           // examples in the slice
  std::vector<Matrix> value;  // by TensorId, [rows, width]
  std::vector<Matrix> grad;   // by TensorId, during Backward
  const float* params = nullptr;
  float* param_grad = nullptr;  // backward *writes* (does not add to) its layer's range
  bool training = false;        // dropout is on
  uint64_t dropout_seed = 0;    // of (seed, step): masks depend on it and on the example
  int64_t first_example = 0;    // number of the slice's first example in its batch

  ConstMatrix Value(const LayerInput& in) const {
    return value[in.tensor].Columns(in.begin, in.cols);
  }
  // Only where in.grad_cols > 0.
  Matrix Grad(const LayerInput& in) const {
    return grad[in.tensor].Columns(in.begin, in.grad_cols);
  }
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::string name() const = 0;
  // In the order in which Backward delivers their gradients.
  virtual std::vector<LayerInput*> inputs() = 0;
  virtual ParamRange params() const { return {}; }
  // Its parameters, all of them, in their order.
  virtual std::vector<ParamBlock> blocks() const { return {}; }
  // Writes the names of its output's columns, unless no layer with parameters can read them. Those
  // of its inputs are there.
  virtual void NameColumns(ColumnNames* names) const { (void)names; }
  // Writes the initial values of its range of `params`, deterministic in `seed`.
  virtual void Init(uint64_t seed, float* params) const { (void)seed, (void)params; }
  virtual void Forward(Tape& tape) const = 0;
  // Reads the gradient of its output, which it may use as scratch; writes or adds to the gradient
  // of its inputs; writes its parameters' gradient.
  virtual void Backward(Tape& tape) const = 0;
};

}  // namespace terrace
