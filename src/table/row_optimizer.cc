#include "table/row_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "table/row_kernels.h"

namespace terrace {
namespace {

// By squaring: the same on every machine, unlike a math library's pow.
double Power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

void SetAdamConstants(const TableConfig& config, const RowUpdateArgs& args, RowKernelArgs* k) {
  TERRACE_CHECK(args.step > 0);
  k->beta1 = static_cast<float>(config.beta1);
  k->one_minus_beta1 = static_cast<float>(1 - config.beta1);
  k->beta2 = static_cast<float>(config.beta2);
  k->one_minus_beta2 = static_cast<float>(1 - config.beta2);
  k->lr = static_cast<float>(args.lr / (1 - Power(config.beta1, args.step)));
  k->rescale = static_cast<float>(1 / std::sqrt(1 - Power(config.beta2, args.step)));
}

// The constants of a call; rows are still to be told.
RowKernelArgs KernelArgs(const TableSchema& schema, const RowUpdateArgs& args) {
  const TableConfig& config = schema.config;
  RowKernelArgs k;
  k.dim = schema.layout.dim;
  k.linear = schema.layout.linear;
  k.l2 = static_cast<float>(config.l2);
  k.clip_norm = static_cast<float>(config.clip_norm);
  k.lr = static_cast<float>(args.lr);
  k.eps = static_cast<float>(config.eps);
  if (config.optimizer == RowOptimizer::kAdam) SetAdamConstants(config, args, &k);
  if (config.optimizer == RowOptimizer::kFtrl) {
    // The weights are a function of z and n for one alpha: a schedule would rescale them all.
    k.lr = static_cast<float>(1 / config.lr);
    k.ftrl_l1 = static_cast<float>(config.ftrl_l1);
    k.ftrl_l2 = static_cast<float>(config.ftrl_l2);
    k.ftrl_beta = static_cast<float>(config.ftrl_beta);
  }
  return k;
}

void UpdateFloats(RowOptimizer optimizer, const RowKernelArgs& k) {
  const RowOptimizerKernels& kernels = TERRACE_ISA_TABLE(kRowOptimizerKernels);
  switch (optimizer) {
    case RowOptimizer::kSgd:
      return kernels.sgd(k);
    case RowOptimizer::kAdaGrad:
      return kernels.adagrad(k);
    case RowOptimizer::kRowAdaGrad:
      return kernels.row_adagrad(k);
    case RowOptimizer::kAdam:
      return kernels.adam(k);
    case RowOptimizer::kFtrl:
      return kernels.ftrl(k);
  }
}

// Packed rows, a block at a time: numbers that are codes are unpacked into `scratch`, changed there
// and packed again; floats are changed where they are.
int64_t UpdatePacked(Stream& stream, const TableSchema& schema, const RowUpdateArgs& args,
                     RowKernelArgs k) {
  TERRACE_CHECK(args.scratch != nullptr);
  const RowFormat& format = schema.layout.format;
  std::array<uint32_t, kPackRows> in_order;
  for (uint32_t r = 0; r < kPackRows; ++r) in_order[r] = r;
  std::array<uint64_t, kPackRows> keys;
  int64_t saturated = 0;
  for (int64_t begin = 0; begin < args.rows; begin += kPackRows) {
    const PackedRows rows{args.base, args.stride_bytes, args.positions + begin,
                          std::min(kPackRows, args.rows - begin)};
    // The parts of state, if there are two, have the same codec and are neighbours either way.
    const auto floats = [&](const RowPart& part) -> RowFloats {
      if (part.coded == 0) return {rows.base + part.offset, rows.stride_bytes, rows.positions};
      return {reinterpret_cast<std::byte*>(args.scratch + part.first), int64_t{4} * format.numbers,
              in_order.data()};
    };
    k.weights = floats(format.parts[0]);
    k.state = floats(format.parts[format.part_count > 1 ? 1 : 0]);
    k.grads = args.grads + begin * schema.layout.weights;
    k.rows = rows.rows;
    for (int64_t r = 0; r < rows.rows; ++r)
      std::memcpy(&keys[static_cast<size_t>(r)],
                  rows.base + rows.positions[r] * rows.stride_bytes - RowLayout::kKeyBytes,
                  RowLayout::kKeyBytes);
    DecodeRows(stream, format, rows, RowParts::kCoded, args.scratch);
    UpdateFloats(schema.config.optimizer, k);
    saturated +=
        PackRows(stream, schema, rows, RowParts::kCoded, keys.data(), args.step, args.scratch);
  }
  return saturated;
}

}  // namespace

RowPrefetch RowsToUpdate(const RowLayout& layout, const std::byte* base,
                         const uint32_t* positions) {
  const int64_t key = layout.format.packed ? RowLayout::kKeyBytes : 0;
  return {base - key, layout.stride, layout.payload_bytes() + key, positions};
}

int64_t RowScratchFloats(const RowLayout& layout) {
  return layout.format.packed ? kPackRows * layout.format.numbers : 0;
}

int64_t UpdateRows(Stream& stream, const TableSchema& schema, const RowUpdateArgs& args) {
  RowKernelArgs k = KernelArgs(schema, args);
  if (schema.layout.format.packed) return UpdatePacked(stream, schema, args, k);
  const RowLayout& layout = schema.layout;
  k.weights = {args.base, args.stride_bytes, args.positions};
  k.state = {args.base + 4 * layout.weights, args.stride_bytes, args.positions};
  k.grads = args.grads;
  k.rows = args.rows;
  k.prefetch_bytes = 4 * int64_t{layout.weights + layout.state};
  UpdateFloats(schema.config.optimizer, k);
  return 0;
}

}  // namespace terrace
