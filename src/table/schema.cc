#include "table/schema.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr int64_t kStrideBytes = 16;  // rows start on multiples of this

int StateFloats(RowOptimizer optimizer, int weights, int linear) {
  switch (optimizer) {
    case RowOptimizer::kSgd:
      return 0;
    case RowOptimizer::kAdaGrad:
      return weights;
    case RowOptimizer::kRowAdaGrad:
      return (weights > linear ? 1 : 0) + linear;
    case RowOptimizer::kAdam:
    case RowOptimizer::kFtrl:
      return 2 * weights;
  }
  return 0;
}

// Near normal, standard deviation 1: the sum of four 16-bit uniforms. No libm, so the same bits
// everywhere.
float NearNormal(uint64_t bits) {
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>((bits >> (16 * i)) & 0xffff);
  constexpr float kUnit = 1.7320508f / 65536;  // sqrt(3): four uniforms have variance 1/3
  return static_cast<float>(sum - 2 * 65535) * kUnit;
}

void InitVector(const TableSchema& schema, uint64_t key, float* vector) {
  const auto scale = static_cast<float>(schema.config.init_scale);
  const int dim = schema.layout.dim;
  RandomStream random(schema.init_seed, key);
  switch (schema.config.init) {
    case RowInit::kZero:
      break;
    case RowInit::kUniform:
      for (int i = 0; i < dim; i += 2) {
        const uint64_t bits = random.Next();  // 24 bits of it for each of two weights
        vector[i] = (2 * UnitFloat(bits) - 1) * scale;
        if (i + 1 < dim) vector[i + 1] = (2 * UnitFloat(bits << 32) - 1) * scale;
      }
      break;
    case RowInit::kNormal:
      for (int i = 0; i < dim; ++i) vector[i] = NearNormal(random.Next()) * scale;
      break;
  }
}

// FTRL derives a weight from its state z; this z gives the weight that the row starts with.
float FtrlStart(const TableConfig& c, float weight) {
  if (weight == 0) return 0;
  const double z = weight * (c.ftrl_beta / c.lr + c.ftrl_l2) + std::copysign(c.ftrl_l1, weight);
  return static_cast<float>(-z);
}

}  // namespace

void TableConfig::Visit(ConfigVisitor& v) {
  v.Int("dim", &dim, {0, 512}, "floats of a row's vector; lr uses none");
  v.Enum("optimizer", &optimizer, {"sgd", "adagrad", "rowadagrad", "adam", "ftrl"},
         "how gradients change rows");
  v.Double("lr", &lr, {1e-30, 1e30}, "learning rate");
  v.Double("l2", &l2, {0, 1e6}, "l2 * w is added to the gradient of the rows a batch touches");
  v.Double("clip_norm", &clip_norm, {0, 1e30}, "largest norm of a row's gradient; 0: no limit");
  v.Enum("init", &init, {"zero", "uniform", "normal"}, "a new row's vector");
  v.Double("init_scale", &init_scale, {0, 1e6},
           "uniform: in [-scale, scale]; normal: the standard deviation");
  v.Double("initial_accumulator", &initial_accumulator, {0, 1e6},
           "adagrad, rowadagrad: where the sum of squares starts");
  v.Double("eps", &eps, {0, 1}, "adagrad, rowadagrad, adam: added to the divisor");
  v.Double("beta1", &beta1, {0, 0.999999}, "adam: decay of the mean gradient");
  v.Double("beta2", &beta2, {0, 0.9999999}, "adam: decay of the mean square");
  v.Double("ftrl_l1", &ftrl_l1, {0, 1e6}, "ftrl: weights below it become 0");
  v.Double("ftrl_l2", &ftrl_l2, {0, 1e6}, "ftrl: pulls weights to 0");
  v.Double("ftrl_beta", &ftrl_beta, {0, 1e6}, "ftrl: damps the first steps");
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
  layout.state = StateFloats(config.optimizer, layout.weights, layout.linear);
  layout.stride = (layout.payload_bytes() + kStrideBytes - 1) / kStrideBytes * kStrideBytes;
  schema.init_seed = RandomBits(seed, HashBytes(name, 0));
  return schema;
}

void InitRow(const TableSchema& schema, uint64_t key, std::byte* row) {
  const RowLayout& layout = schema.layout;
  auto* const weights = reinterpret_cast<float*>(row);
  float* const state = weights + layout.weights;
  for (int i = 0; i < layout.weights; ++i) weights[i] = 0;
  InitVector(schema, key, weights);
  const RowOptimizer optimizer = schema.config.optimizer;
  const bool adagrad =
      optimizer == RowOptimizer::kAdaGrad || optimizer == RowOptimizer::kRowAdaGrad;
  const float start = adagrad ? static_cast<float>(schema.config.initial_accumulator) : 0;
  for (int i = 0; i < layout.state; ++i) state[i] = start;
  if (optimizer == RowOptimizer::kFtrl)
    for (int i = 0; i < layout.weights; ++i) state[i] = FtrlStart(schema.config, weights[i]);
}

}  // namespace terrace
