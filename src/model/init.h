// Initial values of dense weights.
#pragma once

#include <cstdint>

#include "device/vector_math.h"

namespace terrace {

// Uniform in [-limit, limit) with the limit of He et al. 2015 before a relu, of Glorot and Bengio
// 2010 otherwise. Element i is a function of (seed, i).
void InitWeights(uint64_t seed, int64_t fan_in, int64_t fan_out, Activation activation,
                 float* weights);  // [fan_in, fan_out]

}  // namespace terrace
