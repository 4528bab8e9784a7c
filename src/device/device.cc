#include "device/device.h"

#include <cblas.h>
#include <stdlib.h>

#include <algorithm>
#include <string_view>

#include "base/cpu.h"
#include "base/memory.h"
#include "device/dense_ops.h"
#include "device/gemm.h"

// OpenBLAS's choice of kernels, made when it is loaded. Absent in builds for one kind of CPU.
extern "C" {
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
}

namespace terrace {
namespace {

// OpenBLAS knows CPUs by their model: one that is younger than the library gets kernels of 2004,
// five times slower. What the CPU can do decides then, unless the user has.
void ChooseBlasKernels() {
  constexpr std::string_view kModern[] = {"Haswell",  "Excavator",  "Zen",
                                          "SkylakeX", "Cooperlake", "SapphireRapids"};
  if (CurrentIsa() == IsaLevel::kBaseline || getenv("OPENBLAS_CORETYPE") != nullptr) return;
  if (std::find(std::begin(kModern), std::end(kModern), openblas_get_corename()) !=
          std::end(kModern) ||
      gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr)
    return;
  setenv("OPENBLAS_CORETYPE", CurrentIsa() == IsaLevel::kAvx512 ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
}

class Cpu : public Device {
 public:
  Cpu() : kernels_(TERRACE_ISA_TABLE(kDenseKernels)) {
    // Threads take slices of a batch; a BLAS with threads of its own would fight them, and would
    // make sums depend on their number.
    openblas_set_num_threads(1);
    ChooseBlasKernels();
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
