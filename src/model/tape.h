// A model is a list of layers over named tensors; this is what a layer sees.
//
// All tensors are [examples of a slice, width]. Parameters of all layers lie in one flat array; so
// do their gradients, one array a slice. Layers hold no state that changes: activations live in the
// Tape (one for each thread), so that threads run slices side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace terrace {

using TensorId = int;

// A slice of parameters that a layer owns.
struct ParamRange {
  int64_t begin = 0;
  int64_t size = 0;
};

// One forward + backward pass of one slice. Belongs to one thread.
struct Tape {
  Stream* stream = nullptr;
  int64_t rows = 0;                  // examples in the slice
  std::vector<Matrix> value;         // by TensorId, [rows, width]
  std::vector<Matrix> grad;          // by TensorId; data is null where no gradient is wanted
  const float* params = nullptr;
  float* param_grad = nullptr;       // backward *writes* (does not add to) its layer's range
  bool training = false;             // dropout is on
  uint64_t dropout_seed = 0;         // of (seed, step): masks depend on it and on the example
  int64_t first_example = 0;         // number of the slice's first example in its batch
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual std::string name() const = 0;
  virtual ParamRange params() const { return {}; }
  // Initial parameters, deterministic in `seed`.
  virtual void Init(uint64_t seed, float* params) const { (void)seed, (void)params; }
  virtual void Forward(Tape& tape) const = 0;
  // Reads the gradient of its outputs; writes (first use) or adds to the gradient of its inputs, as
  // fixed when the model was built; writes its parameters' gradient.
  virtual void Backward(Tape& tape) const = 0;
};

}  // namespace terrace
