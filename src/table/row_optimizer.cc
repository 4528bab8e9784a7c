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

void UpdateFloats(const TableSchema& schema, const RowUpdateArgs& args) {
  const TableConfig& config = schema.config;
  RowKernelArgs k;
  k.base = args.base;
  k.stride_bytes = args.stride_bytes;
  k.dim = schema.layout.dim;
  k.linear = schema.layout.linear;
  k.state = schema.layout.state;
  k.positions = args.positions;
  k.grads = args.grads;
  k.rows = args.rows;
  k.l2 = static_cast<float>(config.l2);
  k.clip_norm = static_cast<float>(config.clip_norm);
  k.lr = static_cast<float>(args.lr);
  k.eps = static_cast<float>(config.eps);
  const RowOptimizerKernels& kernels = TERRACE_ISA_TABLE(kRowOptimizerKernels);
  switch (config.optimizer) {
    case RowOptimizer::kSgd:
      return kernels.sgd(k);
    case RowOptimizer::kAdaGrad:
      return kernels.adagrad(k);
    case RowOptimizer::kRowAdaGrad:
      return kernels.row_adagrad(k);
    case RowOptimizer::kAdam:
      SetAdamConstants(config, args, &k);
      return kernels.adam(k);
    case RowOptimizer::kFtrl:
      // The weights are a function of z and n for one alpha: a schedule would rescale them all.
      k.lr = static_cast<float>(1 / config.lr);
      k.ftrl_l1 = static_cast<float>(config.ftrl_l1);
      k.ftrl_l2 = static_cast<float>(config.ftrl_l2);
      k.ftrl_beta = static_cast<float>(config.ftrl_beta);
      return kernels.ftrl(k);
  }
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
  const RowFormat& format = schema.layout.format;
  if (!format.packed) {
    UpdateFloats(schema, args);
    return 0;
  }
  TERRACE_CHECK(args.scratch != nullptr);
  // The block of unpacked rows is an arena for the optimizer.
  std::array<uint32_t, kPackRows> in_order;
  for (uint32_t r = 0; r < kPackRows; ++r) in_order[r] = r;
  std::array<uint64_t, kPackRows> keys;
  RowUpdateArgs block = args;
  block.base = reinterpret_cast<std::byte*>(args.scratch);
  block.stride_bytes = int64_t{4} * format.numbers;
  block.positions = in_order.data();
  int64_t saturated = 0;
  for (int64_t begin = 0; begin < args.rows; begin += kPackRows) {
    block.rows = std::min(kPackRows, args.rows - begin);
    block.grads = args.grads + begin * schema.layout.weights;
    const PackedRows rows{args.base, args.stride_bytes, args.positions + begin, block.rows};
    for (int64_t r = 0; r < block.rows; ++r)
      std::memcpy(&keys[static_cast<size_t>(r)],
                  args.base + rows.positions[r] * args.stride_bytes - RowLayout::kKeyBytes,
                  RowLayout::kKeyBytes);
    DecodeRows(stream, format, rows, args.scratch);
    UpdateFloats(schema, block);
    saturated += PackRows(stream, schema, rows, keys.data(), args.step, args.scratch);
  }
  return saturated;
}

}  // namespace terrace
