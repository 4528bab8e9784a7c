#include "device/device.h"

#include <cblas.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/cpu.h"
#include "base/error.h"
#include "device/dense_ops.h"
#include "device/gemm.h"

namespace terrace {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
// From here on an allocation has its own mapping, so that huge pages fit in it.
constexpr size_t kLarge = 2 * kHugePage;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

[[noreturn]] void OutOfMemory(size_t bytes) {
  throw Error(ErrorCode::kIo,
              fmt::format("out of memory: cannot allocate {} bytes ({:.2f} GiB) on the CPU; lower "
                          "the memory budget or the batch size",
                          bytes, static_cast<double>(bytes) / (1 << 30)));
}

// Maps `bytes` (whole pages) that start on a huge page.
void* MapHugePages(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  if (mapped < bytes) return nullptr;
  void* const raw =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(raw);
  const size_t before =
      RoundUp(reinterpret_cast<uintptr_t>(raw), kHugePage) - reinterpret_cast<uintptr_t>(raw);
  const size_t after = kHugePage - before;
  if (before > 0) munmap(begin, before);
  if (after > 0) munmap(begin + before + bytes, after);
  // Only advice: where huge pages are switched off, small ones do.
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

class Cpu : public Device {
 public:
  Cpu() : kernels_(TERRACE_ISA_TABLE(kDenseKernels)) {
    // Threads take slices of a batch; a BLAS with threads of its own would fight them, and would
    // make sums depend on their number.
    openblas_set_num_threads(1);
  }

  std::string name() const override { return "cpu"; }

  void* Allocate(size_t bytes) override {
    if (bytes >= kLarge) {
      void* const data = bytes > SIZE_MAX - kPage ? nullptr : MapHugePages(RoundUp(bytes, kPage));
      if (data == nullptr) OutOfMemory(bytes);
      return data;  // fresh pages are zero
    }
    const size_t padded = RoundUp(bytes + (bytes == 0), kAlignment);
    void* const data = std::aligned_alloc(kAlignment, padded);
    if (data == nullptr) OutOfMemory(bytes);
    return std::memset(data, 0, padded);
  }

  void Free(void* data, size_t bytes) override {
    if (bytes >= kLarge)
      munmap(data, RoundUp(bytes, kPage));
    else
      std::free(data);
  }

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
