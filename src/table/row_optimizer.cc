#include "table/row_optimizer.h"

#include <cmath>

#include "table/row_kernels.h"

namespace terrace {

void UpdateRows(Stream&, const TableSchema& schema, const RowUpdateArgs& args) {
  const TableConfig& c = schema.config;
  const auto step = static_cast<double>(args.step);
  const bool adam = c.optimizer == RowOptimizer::kAdam;
  RowKernelArgs k;
  k.base = args.base;
  k.stride_bytes = args.stride_bytes;
  k.positions = args.positions;
  k.grads = args.grads;
  k.rows = args.rows;
  k.weights = schema.layout.weights;
  k.linear = schema.layout.linear;
  k.lr = static_cast<float>(adam ? args.lr / (1 - std::pow(c.beta1, step)) : args.lr);
  k.l2 = static_cast<float>(c.l2);
  k.clip_norm = static_cast<float>(c.clip_norm);
  k.eps = static_cast<float>(c.eps);
  k.beta1 = static_cast<float>(c.beta1);
  k.beta2 = static_cast<float>(c.beta2);
  k.adam_scale = adam ? static_cast<float>(1 / std::sqrt(1 - std::pow(c.beta2, step))) : 1;
  k.ftrl_l1 = static_cast<float>(c.ftrl_l1);
  k.ftrl_l2 = static_cast<float>(c.ftrl_l2);
  k.ftrl_beta = static_cast<float>(c.ftrl_beta);
  TERRACE_ISA_TABLE(kRowKernels).update[static_cast<int>(c.optimizer)](k);
}

}  // namespace terrace
