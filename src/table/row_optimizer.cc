#include "table/row_optimizer.h"

#include <cmath>

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

}  // namespace

void UpdateRows(Stream&, const TableSchema& schema, const RowUpdateArgs& args) {
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

}  // namespace terrace
