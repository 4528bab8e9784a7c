// For tests of kernels: matrices with guarded margins, and the kernel tables of this CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "base/random.h"
#include "device/dense_ops.h"

namespace terrace {

// Random numbers in [-scale, scale).
inline std::vector<float> RandomFloats(int64_t n, uint64_t seed, float scale = 1) {
  std::vector<float> v(n);
  RandomStream random(seed, 17);
  for (float& x : v) x = (2 * UnitFloat(random.Next()) - 1) * scale;
  return v;
}

// A matrix whose rows are followed by a margin that nobody may write.
class TestMatrix {
 public:
  TestMatrix(int64_t rows, int64_t cols, uint64_t seed = 0)
      : rows_(rows), cols_(cols), data_(rows * (cols + kMargin), kGuard) {
    const std::vector<float> random = RandomFloats(rows * cols, seed);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) at(r, c) = random[r * cols + c];
  }

  Matrix view() { return {data_.data(), rows_, cols_, cols_ + kMargin}; }
  float& at(int64_t r, int64_t c) { return data_[r * (cols_ + kMargin) + c]; }
  float at(int64_t r, int64_t c) const { return data_[r * (cols_ + kMargin) + c]; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

  // The elements, row by row. Throws if a margin was written.
  std::vector<float> Elements() const {
    std::vector<float> all;
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) all.push_back(at(r, c));
      for (int64_t c = cols_; c < cols_ + kMargin; ++c) TERRACE_CHECK(at(r, c) == kGuard);
    }
    return all;
  }

 private:
  static constexpr int64_t kMargin = 3;
  static constexpr float kGuard = 12345;
  int64_t rows_;
  int64_t cols_;
  std::vector<float> data_;
};

// The kernel tables that this CPU can run.
inline std::vector<const DenseKernels*> AllDenseKernels() {
  std::vector<const DenseKernels*> tables = {&isa_baseline::kDenseKernels};
#if defined(TERRACE_HAVE_X86_ISA)
  if (CurrentIsa() >= IsaLevel::kAvx2) tables.push_back(&isa_avx2::kDenseKernels);
  if (CurrentIsa() >= IsaLevel::kAvx512) tables.push_back(&isa_avx512::kDenseKernels);
#endif
  return tables;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// run(kernels) returns what the kernels wrote, which is what this returns. Throws unless every
// table gives the same bits.
template <typename Run>
std::vector<float> OnEveryIsa(Run run) {
  const std::vector<const DenseKernels*> tables = AllDenseKernels();
  const std::vector<float> first = run(*tables[0]);
  for (const DenseKernels* kernels : tables) TERRACE_CHECK(SameBits(run(*kernels), first));
  return first;
}

// "" if each element is within `tolerance`, relative to 1 + |want|; else where it is not.
inline std::string FirstDifference(const std::vector<float>& got, const std::vector<double>& want,
                                   double tolerance) {
  if (got.size() != want.size())
    return std::to_string(got.size()) + " elements, not " + std::to_string(want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i]))))
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(want[i]);
  return "";
}

}  // namespace terrace
