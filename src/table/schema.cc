#include "table/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr int64_t kStrideBytes = 8;  // keys start on multiples of this
constexpr int kMaxNumbers = 3 * (512 + 1);
constexpr uint64_t kRoundingStream = 0x726f756e64;  // not one of the initialiser's draws

// Numbers that differ in size get parts, and so scales, of their own.
RowFormat FormatOf(const TableConfig& c, int dim, int linear) {
  RowFormat format;
  format.Add(c.weight_codec, dim, linear, false);
  switch (c.optimizer) {
    case RowOptimizer::kSgd:
      break;
    case RowOptimizer::kAdaGrad:
      format.Add(c.state_codec, dim, linear, true);
      break;
    case RowOptimizer::kRowAdaGrad: {
      // One sum for a vector: a scale for it would be larger than the number.
      const RowCodec codec = HasScale(c.state_codec) ? RowCodec::kFp32 : c.state_codec;
      format.Add(codec, dim > 0 ? 1 : 0, linear, true);
      break;
    }
    case RowOptimizer::kAdam:  // mean, variance
    case RowOptimizer::kFtrl:  // z, sum of squares
      format.Add(c.state_codec, dim, linear, false);
      format.Add(c.state_codec, dim, linear, true);
      break;
  }
  return format;
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

double LargestOf(RowCodec codec) {
  if (codec == RowCodec::kFp32) return std::numeric_limits<double>::infinity();
  return codec == RowCodec::kFp16 ? 65504 : 0x1.fep127;
}

// Rows can be packed, and a new one does not saturate.
void CheckCodecs(const std::string& table, const TableConfig& c) {
  if (c.dim == 0 && (HasScale(c.weight_codec) || HasScale(c.state_codec)))
    throw Error(ErrorCode::kUsage,
                fmt::format("tables.{}: rows are a linear weight alone, so an integer codec has no "
                            "vector to quantize; use fp16 or bf16",
                            table));
  double weight = c.init == RowInit::kNormal ? 6 * c.init_scale : c.init_scale;
  if (c.init == RowInit::kZero) weight = 0;
  double state = 0;
  if (c.optimizer == RowOptimizer::kAdaGrad || c.optimizer == RowOptimizer::kRowAdaGrad)
    state = c.initial_accumulator;
  if (c.optimizer == RowOptimizer::kFtrl)
    state = std::abs(FtrlStart(c, static_cast<float>(weight)));
  const auto check = [&](const char* what, double start, RowCodec codec) {
    if (start <= LargestOf(codec)) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("tables.{}: {} of new rows are up to {:g}, but the codec holds up to "
                            "{:g}; use bf16 or fp32, or start smaller",
                            table, what, start, LargestOf(codec)));
  };
  check("weights", weight, c.weight_codec);
  check("optimizer states", state, c.state_codec);
}

}  // namespace

void TableConfig::Visit(ConfigVisitor& v) {
  v.Int("dim", &dim, {0, 512},
        "floats of a row's vector; 0: rows are a linear weight alone, as with lr");
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
  v.Enum("weight_codec", &weight_codec, {"fp32", "fp16", "bf16", "int16", "int8"},
         "how a row's weights are packed, in every tier; integers have one scale a vector");
  v.Enum("state_codec", &state_codec, {"fp32", "fp16", "bf16", "int16", "int8"},
         "how the optimizer's numbers are packed");
  v.Enum("rounding", &rounding, {"stochastic", "nearest"},
         "packing: at random, so that small updates add up, or to the nearest");
  v.Table("admission", &admission, "Which keys get a row");
  v.Table("life", &life, "What is counted of a row's use, and when it goes");
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
        "tables." + name +
            ".dim is 0, but this model has no linear weights, so its rows would be empty; give it "
            "a dim, or choose a model.kind with linear weights (lr, fm, widedeep, deepfm)");
  CheckCodecs(name, config);
  layout.format = FormatOf(config, layout.dim, layout.linear);
  layout.state = layout.format.numbers - layout.weights;
  layout.counts = config.life.counts();
  layout.stride = (RowLayout::kKeyBytes + layout.payload_bytes() + kStrideBytes - 1) /
                  kStrideBytes * kStrideBytes;
  schema.init_seed = RandomBits(seed, HashBytes(name, 0));
  schema.rounding_seed = RandomBits(schema.init_seed, kRoundingStream, kRoundingStream);
  return schema;
}

int64_t PackRows(Stream& stream, const TableSchema& schema, const PackedRows& rows, RowParts parts,
                 const uint64_t* keys, int64_t step, const float* numbers) {
  if (schema.config.rounding == Rounding::kNearest)
    return EncodeRows(stream, schema.layout.format, rows, parts, numbers, nullptr);
  TERRACE_CHECK(rows.rows <= kPackRows);
  std::array<uint64_t, kPackRows> words;
  RandomWords(stream, schema.rounding_seed, static_cast<uint64_t>(step), keys, rows.rows,
              words.data());
  return EncodeRows(stream, schema.layout.format, rows, parts, numbers, words.data());
}

namespace {

// Numbers that are 0 are left as they are.
void FillRow(const TableSchema& schema, uint64_t key, float* weights) {
  const RowLayout& layout = schema.layout;
  const TableConfig& config = schema.config;
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

}  // namespace

void InitRow(const TableSchema& schema, uint64_t key, std::byte* row) {
  const RowLayout& layout = schema.layout;
  std::memset(row, 0, static_cast<size_t>(layout.payload_bytes()));
  if (!layout.format.packed) return FillRow(schema, key, reinterpret_cast<float*>(row));
  std::array<float, kMaxNumbers> numbers;
  std::fill_n(numbers.begin(), layout.format.numbers, 0.0f);
  FillRow(schema, key, numbers.data());
  const uint32_t position = 0;
  Stream stream(nullptr);
  const int64_t saturated =
      PackRows(stream, schema, {row, 0, &position, 1}, RowParts::kAll, &key, 0, numbers.data());
  TERRACE_CHECK(saturated == 0);  // TableSchema::Make refuses such a start
}

}  // namespace terrace
