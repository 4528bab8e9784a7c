#include "device/gemm.h"

#include <cblas.h>

#include <limits>

#include "base/error.h"

namespace terrace {
namespace {

CBLAS_TRANSPOSE Blas(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

blasint Dimension(int64_t n) {
  TERRACE_CHECK(n >= 0 && n <= std::numeric_limits<blasint>::max());
  return static_cast<blasint>(n);
}

}  // namespace

void Gemm(Stream& stream, const GemmArgs& args) {
  const int64_t a_rows = args.transpose_a ? args.a.cols : args.a.rows;
  const int64_t a_cols = args.transpose_a ? args.a.rows : args.a.cols;
  const int64_t b_rows = args.transpose_b ? args.b.cols : args.b.rows;
  const int64_t b_cols = args.transpose_b ? args.b.rows : args.b.cols;
  TERRACE_CHECK(a_rows == args.c.rows && b_cols == args.c.cols && a_cols == b_rows);
  if (args.c.rows == 0 || args.c.cols == 0) return;
  stream.device().Gemm(stream, args);
}

void CpuGemm(const GemmArgs& args) {
  const int64_t inner = args.transpose_a ? args.a.rows : args.a.cols;
  cblas_sgemm(CblasRowMajor, Blas(args.transpose_a), Blas(args.transpose_b), Dimension(args.c.rows),
              Dimension(args.c.cols), Dimension(inner), args.alpha, args.a.data,
              Dimension(args.a.stride), args.b.data, Dimension(args.b.stride), args.beta,
              args.c.data, Dimension(args.c.stride));
}

}  // namespace terrace
