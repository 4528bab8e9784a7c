// What a device supplies to run the operations of dense_ops.h: one launcher for each.
#pragma once

#include "base/cpu.h"
#include "device/dense_ops_kernels.h"
#include "device/interaction_kernels.h"
#include "device/update_kernels.h"

namespace terrace {

class Stream;

struct DenseKernels {
  void (*bias_activate)(Stream&, const BiasActivate&);
  void (*activate_backward)(Stream&, const ActivateBackward&);
  void (*row_dot)(Stream&, const RowDot&);
  void (*row_dot_weight_grad)(Stream&, const RowDotWeightGrad&);
  void (*row_dot_input_grad)(Stream&, const RowDotInputGrad&);
  void (*sum_parts)(Stream&, const SumParts&);
  void (*dropout)(Stream&, const Dropout&);
  void (*copy)(Stream&, const Copy&);
  void (*accumulate)(Stream&, const Accumulate&);
  void (*clear)(Stream&, const Clear&);

  void (*fm_pool)(Stream&, const FmPool&);
  void (*fm_pool_backward)(Stream&, const FmPoolBackward&);
  void (*resize_vectors)(Stream&, const ResizeVectors&);
  void (*cross_forward)(Stream&, const CrossForward&);
  void (*cross_backward)(Stream&, const CrossBackward&);
  void (*pair_dots)(Stream&, const PairDots&);
  void (*pair_dots_backward)(Stream&, const PairDotsBackward&);

  double (*log_loss)(Stream&, const LogLossRows&);
  void (*sgd)(Stream&, const SgdUpdate&);
  void (*adagrad)(Stream&, const AdaGradUpdate&);
  void (*adam)(Stream&, const AdamUpdate&);
  double (*sum_squares)(Stream&, const SumSquares&);
};
TERRACE_DECLARE_ISA_TABLE(DenseKernels, kDenseKernels)  // the CPU's

}  // namespace terrace
