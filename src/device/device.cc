#include "device/device.h"

#include <cblas.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "device/dense_ops.h"
#include "device/gemm.h"

namespace terrace {
namespace {

class Cpu : public Device {
 public:
  Cpu() : kernels_(TERRACE_ISA_TABLE(kDenseKernels)) {
    // Threads take slices of a batch; a BLAS with threads of its own would fight them, and would
    // make sums depend on their number.
    openblas_set_num_threads(1);
  }

  std::string name() const override { return "cpu"; }

  void* Allocate(size_t bytes) override { return AllocateArray(bytes, true); }
  void Free(void* data, size_t bytes) override { FreeArray(data, bytes); }

  void Gemm(Stream&, const GemmArgs& args) override { CpuGemm(args); }
  const DenseKernels& dense_kernels() const override { return kernels_; }

 private:
  const DenseKernels& kernels_;
};

}  // namespace

Device& CpuDevice() {
  static Cpu cpu;
  return cpu;
}

}  // namespace terrace
