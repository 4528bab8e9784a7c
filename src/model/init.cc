#include "model/init.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace terrace {

void InitWeights(uint64_t seed, int64_t fan_in, int64_t fan_out, Activation activation,
                 float* weights) {
  const int64_t fan = activation == Activation::kRelu ? fan_in : fan_in + fan_out;
  const double limit = std::sqrt(6.0 / static_cast<double>(std::max<int64_t>(fan, 1)));
  for (int64_t i = 0; i < fan_in * fan_out; ++i) {
    const double unit = UnitDouble(RandomBits(seed, static_cast<uint64_t>(i)));
    weights[i] = static_cast<float>((2 * unit - 1) * limit);
  }
}

}  // namespace terrace
