#include "table/schema.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr int64_t kStrideBytes = 8;  // keys start on multiples of this

int StateFloats(RowOptimizer optimizer, int dim, int linear) {
  switch (optimizer) {
    case RowOptimizer::kSgd:
      return 0;
    case RowOptimizer::kAdaGrad:
      return dim + linear;
    case RowOptimizer::kRowAdaGrad:
      return (dim > 0 ? 1 : 0) + linear;
    case RowOptimizer::kAdam:
    case RowOptimizer::kFtrl:
      return 2 * (dim + linear);
  }
  return 0;
}

// Uniform in [-scale, scale): one draw makes two numbers of 24 bits. All steps but the last product
// are exact.
void FillUniform(uint64_t seed, uint64_t key, float scale, int n, float* out) {
  const auto number = [scale](uint64_t bits24) {
    return (static_cast<float>(static_cast<int32_t>(bits24)) * 0x1p-23f - 1.0f) * scale;
  };
  for (int i = 0; i < n; i += 2) {
    const uint64_t bits = RandomBits(seed, key, static_cast<uint64_t>(i / 2));
    out[i] = number(bits >> 40);
    if (i + 1 < n) out[i + 1] = number((bits >> 16) & 0xffffff);
  }
}

// Nearly normal, within 6 standard deviations: the sum of twelve uniform numbers in [0, 1) has
// variance 1. They have 16 bits and are summed as integers, so there is no libm in the result.
void FillNormal(uint64_t seed, uint64_t key, float scale, int n, float* out) {
  constexpr int32_t kMean = 12 * 0xffff / 2;
  for (int i = 0; i < n; ++i) {
    uint64_t sums = 0;  // two sums of six, side by side
    for (uint64_t draw = 0; draw < 3; ++draw) {
      const uint64_t bits = RandomBits(seed, key, static_cast<uint64_t>(i) * 3 + draw);
      sums += (bits & 0x0000ffff0000ffff) + ((bits >> 16) & 0x0000ffff0000ffff);
    }
    const auto sum = static_cast<int32_t>((sums >> 32) + (sums & 0xffffffff));
    out[i] = static_cast<float>(sum - kMean) * 0x1p-16f * scale;
  }
}

// FTRL computes a weight from its state z: this z gives the weight that the row starts with.
float FtrlStart(const TableConfig& c, float weight) {
  if (weight == 0) return 0;
  const double z = weight * (c.ftrl_beta / c.lr + c.ftrl_l2) + std::copysign(c.ftrl_l1, weight);
  return static_cast<float>(-z);
}

}  // namespace

void TableConfig::Visit(ConfigVisitor& v) {
  v.Int("dim", &dim, {0, 512}, "floats of a row's vector; lr uses none");
  v.Enum("optimizer", &optimizer, {"sgd", "adagrad", "rowadagrad", "adam", "ftrl"},
         "how gradients change rows; rowadagrad keeps one sum of squares for a vector");
  v.Double("lr", &lr, {1e-30, 1e30}, "learning rate; ftrl: alpha, which no schedule changes");
  v.Double("l2", &l2, {0, 1e6}, "l2 * w is added to the gradient of the rows a batch touches");
  v.Double("clip_norm", &clip_norm, {0, 1e30},
           "largest norm of a row's gradient, l2 included; 0: no limit");
  v.Enum("init", &init, {"zero", "uniform", "normal"},
         "a new row's vector; linear weights start at 0");
  v.Double("init_scale", &init_scale, {0, 1e6},
           "uniform: in [-scale, scale); normal: the standard deviation");
  v.Double("initial_accumulator", &initial_accumulator, {0, 1e30},
           "adagrad, rowadagrad: where the sum of squares starts");
  v.Double("eps", &eps, {1e-30, 1}, "adagrad, rowadagrad, adam: added to the divisor");
  v.Double("beta1", &beta1, {0, 0.999999}, "adam: decay of the mean gradient");
  v.Double("beta2", &beta2, {0, 0.9999999}, "adam: decay of the mean square");
  v.Double("ftrl_l1", &ftrl_l1, {0, 1e6}, "ftrl: weights below it become 0");
  v.Double("ftrl_l2", &ftrl_l2, {0, 1e6}, "ftrl: pulls weights to 0");
  v.Double("ftrl_beta", &ftrl_beta, {1e-6, 1e6}, "ftrl: damps the first steps");
}

TableSchema TableSchema::Make(const std::string& name, const TableConfig& config, bool linear,
                              uint64_t seed) {
  TableSchema schema;
  schema.name = name;
  schema.config = config;
  RowLayout& layout = schema.layout;
  layout.dim = static_cast<int>(config.dim);
  layout.linear = linear ? 1 : 0;
  layout.weights = layout.dim + layout.linear;
  if (layout.weights == 0)
    throw Error(
        ErrorCode::kUsage,
        "tables." + name + ".dim is 0, but this model uses the rows' vectors; give it a dim");
  layout.state = StateFloats(config.optimizer, layout.dim, layout.linear);
  layout.stride = (RowLayout::kKeyBytes + layout.payload_bytes() + kStrideBytes - 1) /
                  kStrideBytes * kStrideBytes;
  schema.init_seed = RandomBits(seed, HashBytes(name, 0));
  return schema;
}

void InitRow(const TableSchema& schema, uint64_t key, std::byte* row) {
  const RowLayout& layout = schema.layout;
  const TableConfig& config = schema.config;
  std::memset(row, 0, static_cast<size_t>(layout.payload_bytes()));
  auto* const weights = reinterpret_cast<float*>(row);
  float* const state = weights + layout.weights;
  const auto scale = static_cast<float>(config.init_scale);
  switch (config.init) {
    case RowInit::kZero:
      break;
    case RowInit::kUniform:
      FillUniform(schema.init_seed, key, scale, layout.dim, weights);
      break;
    case RowInit::kNormal:
      FillNormal(schema.init_seed, key, scale, layout.dim, weights);
      break;
  }
  switch (config.optimizer) {
    case RowOptimizer::kSgd:
    case RowOptimizer::kAdam:
      break;
    case RowOptimizer::kAdaGrad:
    case RowOptimizer::kRowAdaGrad:
      for (int i = 0; i < layout.state; ++i)
        state[i] = static_cast<float>(config.initial_accumulator);
      break;
    case RowOptimizer::kFtrl:
      for (int i = 0; i < layout.dim; ++i) state[i] = FtrlStart(config, weights[i]);
      break;
  }
}

}  // namespace terrace
