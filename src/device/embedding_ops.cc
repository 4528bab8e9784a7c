#include "device/embedding_ops.h"

#include "base/error.h"
#include "device/embedding_kernels.h"

namespace terrace {

void GatherPool(Stream&, const GatherArgs& args) {
  TERRACE_CHECK(args.arena.linear == 0 || args.linear != nullptr);
  TERRACE_ISA_TABLE(kEmbeddingKernels).gather_pool(args);
}

void SumRowGradients(Stream&, const RowGradArgs& args) {
  TERRACE_CHECK(args.dim <= kMaxEmbeddingDim);
  TERRACE_CHECK(args.slice_examples > 0 && args.slice_examples < int64_t{1} << 31);
  TERRACE_CHECK(args.pooled_grad.rows <= kMaxGradSlices * args.slice_examples);
  TERRACE_CHECK(args.linear == 0 || args.linear_grad != nullptr);
  TERRACE_ISA_TABLE(kEmbeddingKernels).sum_row_gradients(args);
}

}  // namespace terrace
