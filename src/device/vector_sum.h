// Sums of vectors, for the sparse kernels (included by *_simd.cc only).
#pragma once

#include <cstdint>

#include "device/kernel_macros.h"
#include "device/packed_numbers.h"

namespace terrace {

TERRACE_HD void PrefetchLines(const void* from, int64_t bytes) {
  constexpr int64_t kLine = 64;
  const char* const begin = static_cast<const char*>(from);
  for (int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(begin + b);
  __builtin_prefetch(begin + bytes - 1);
}

// The sum of the vectors of occurrences [begin, end), in registers for the common dims. `at(o)` is
// the vector of occurrence o: floats or codes (packed_numbers.h). A sum starts with its first term,
// not with 0.
template <int kDim, bool kScaled>
struct VectorSum {
  static constexpr int kWidth = kDim % 8 == 0 ? 8 : 4;
  static constexpr int kParts = kDim / kWidth;
  using Part = Vec<float, kWidth>;

  template <typename Numbers>
  TERRACE_HD static void Term(const Numbers& from, int p, [[maybe_unused]] const float* scales,
                              [[maybe_unused]] int64_t o, Part& x) {
    from.template Load<kWidth>(p * kWidth, x);
    if constexpr (kScaled) x *= scales[o];
  }

  template <typename At>
  TERRACE_HD static void Run(int, int64_t begin, int64_t end, const float* scales, float* out,
                             At at) {
    Part sum[kParts];
    const auto first = at(begin);
    for (int p = 0; p < kParts; ++p) Term(first, p, scales, begin, sum[p]);
    for (int64_t o = begin + 1; o < end; ++o) {
      const auto from = at(o);
      for (int p = 0; p < kParts; ++p) {
        Part x;
        Term(from, p, scales, o, x);
        sum[p] += x;
      }
    }
    __builtin_memcpy(out, sum, sizeof(sum));
  }
};

template <bool kScaled>
struct VectorSum<0, kScaled> {
  template <typename At>
  TERRACE_HD static void Run(int dim, int64_t begin, int64_t end, const float* scales, float* out,
                             At at) {
    for (int64_t o = begin; o < end; ++o) {
      const auto from = at(o);
      int i = 0;
      for (; i + 8 <= dim; i += 8) Add<8>(from, i, scales, o, o > begin, out);
      if (i + 4 <= dim) {
        Add<4>(from, i, scales, o, o > begin, out);
        i += 4;
      }
      for (; i < dim; ++i) Add<1>(from, i, scales, o, o > begin, out);
    }
  }

  template <int kWidth, typename Numbers>
  TERRACE_HD static void Add(const Numbers& from, int i, [[maybe_unused]] const float* scales,
                             [[maybe_unused]] int64_t o, bool adds, float* out) {
    Vec<float, kWidth> x, sum;
    from.template Load<kWidth>(i, x);
    if constexpr (kScaled) x *= scales[o];
    if (adds) {
      __builtin_memcpy(&sum, out + i, sizeof(sum));
      x = sum + x;
    }
    __builtin_memcpy(out + i, &x, sizeof(x));
  }
};

// The kernel for a dim and for scales or none.
template <template <int, bool> typename Kernel, typename Args>
TERRACE_HD void DispatchDim(int dim, bool scaled, const Args& args) {
  const auto run = [&]<int kDim>() {
    scaled ? Kernel<kDim, true>::Run(args) : Kernel<kDim, false>::Run(args);
  };
  switch (dim) {
    case 4:
      return run.template operator()<4>();
    case 8:
      return run.template operator()<8>();
    case 16:
      return run.template operator()<16>();
    case 32:
      return run.template operator()<32>();
    default:
      return run.template operator()<0>();
  }
}

}  // namespace terrace
