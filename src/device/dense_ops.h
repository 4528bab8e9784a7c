// The closed set of dense operations, besides GEMM, that models need of a device.
//
// Launch(stream, operation) runs it on the stream's device. Arguments and exact meaning: the
// structs of dense_ops_kernels.h, interaction_kernels.h and update_kernels.h.
#pragma once

#include "device/dense_kernel_table.h"
#include "device/device.h"

namespace terrace {

inline const DenseKernels& KernelsOf(Stream& s) { return s.device().dense_kernels(); }

inline void Launch(Stream& s, const BiasActivate& op) { KernelsOf(s).bias_activate(s, op); }
inline void Launch(Stream& s, const ActivateBackward& op) { KernelsOf(s).activate_backward(s, op); }
inline void Launch(Stream& s, const RowDot& op) { KernelsOf(s).row_dot(s, op); }
inline void Launch(Stream& s, const RowDotWeightGrad& op) {
  KernelsOf(s).row_dot_weight_grad(s, op);
}
inline void Launch(Stream& s, const RowDotInputGrad& op) { KernelsOf(s).row_dot_input_grad(s, op); }
inline void Launch(Stream& s, const SumParts& op) { KernelsOf(s).sum_parts(s, op); }
inline void Launch(Stream& s, const Dropout& op) { KernelsOf(s).dropout(s, op); }
inline void Launch(Stream& s, const Copy& op) { KernelsOf(s).copy(s, op); }
inline void Launch(Stream& s, const Accumulate& op) { KernelsOf(s).accumulate(s, op); }
inline void Launch(Stream& s, const Clear& op) { KernelsOf(s).clear(s, op); }

inline void Launch(Stream& s, const FmPool& op) { KernelsOf(s).fm_pool(s, op); }
inline void Launch(Stream& s, const FmPoolBackward& op) { KernelsOf(s).fm_pool_backward(s, op); }
inline void Launch(Stream& s, const ResizeVectors& op) { KernelsOf(s).resize_vectors(s, op); }
inline void Launch(Stream& s, const CrossForward& op) { KernelsOf(s).cross_forward(s, op); }
inline void Launch(Stream& s, const CrossBackward& op) { KernelsOf(s).cross_backward(s, op); }
inline void Launch(Stream& s, const PairDots& op) { KernelsOf(s).pair_dots(s, op); }
inline void Launch(Stream& s, const PairDotsBackward& op) {
  KernelsOf(s).pair_dots_backward(s, op);
}

inline double Launch(Stream& s, const LogLossRows& op) { return KernelsOf(s).log_loss(s, op); }
inline void Launch(Stream& s, const SgdUpdate& op) { KernelsOf(s).sgd(s, op); }
inline void Launch(Stream& s, const AdaGradUpdate& op) { KernelsOf(s).adagrad(s, op); }
inline void Launch(Stream& s, const AdamUpdate& op) { KernelsOf(s).adam(s, op); }
inline double Launch(Stream& s, const SumSquares& op) { return KernelsOf(s).sum_squares(s, op); }

// to[0..size) += from
inline void AddTo(Stream& s, int64_t size, const float* from, float* to) {
  Launch(s, Accumulate{.from = from, .to = to, .size = size});
}

}  // namespace terrace
