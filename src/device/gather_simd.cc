#include "device/embedding_kernels.h"
#include "device/vector_sum.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

// Occurrences ahead whose rows are prefetched.
constexpr int64_t kGatherAhead = 64;

template <typename Numbers>
struct GatherOf {
  template <int kDim, bool kScaled>
  struct Kernel {
    static void Run(const GatherArgs& a) {
      const char* const base = reinterpret_cast<const char*>(a.arena.base);
      const int64_t stride = a.arena.stride_bytes;
      const int dim = kDim != 0 ? kDim : a.arena.dim;
      const bool linear = a.arena.linear != 0;
      const int64_t bytes = Numbers::Bytes(dim, linear);
      const int64_t last_occurrence = int64_t{a.bag_offsets[a.last * a.slots]} - 1;
      const auto row = [=, positions = a.positions](int64_t o) {
        return base + positions[o] * stride;
      };
      for (int64_t e = a.first; e < a.last; ++e) {
        float linear_sum = linear ? a.linear[e - a.first] : 0.0f;
        const auto next_row = [&](int64_t o) {
          const int64_t ahead = o + kGatherAhead;
          PrefetchLines(row(ahead < last_occurrence ? ahead : last_occurrence), bytes);
          const Numbers from(row(o), dim);
          if (linear) linear_sum += kScaled ? from.Linear(dim) * a.scales[o] : from.Linear(dim);
          return from;
        };
        const uint32_t* const offsets = a.bag_offsets + e * a.slots;
        float* out = a.pooled.data + (e - a.first) * a.pooled.stride;
        for (int j = 0; j < a.slots; ++j, out += dim) {
          if (offsets[j] == offsets[j + 1])
            __builtin_memset(out, 0, dim * sizeof(float));
          else
            VectorSum<kDim, kScaled>::Run(dim, offsets[j], offsets[j + 1], a.scales, out, next_row);
        }
        if (linear) a.linear[e - a.first] = linear_sum;
      }
    }
  };

  // Rows that are a linear weight alone.
  template <bool kScaled>
  static void Linear(const GatherArgs& a) {
    const char* const base = reinterpret_cast<const char*>(a.arena.base);
    const int64_t stride = a.arena.stride_bytes;
    const uint32_t* const positions = a.positions;
    const int64_t last_occurrence = int64_t{a.bag_offsets[a.last * a.slots]} - 1;
    for (int64_t e = a.first; e < a.last; ++e) {
      const int64_t end = a.bag_offsets[(e + 1) * a.slots];
      float sum = a.linear[e - a.first];
      for (int64_t o = a.bag_offsets[e * a.slots]; o < end; ++o) {
        const int64_t ahead = o + kGatherAhead;
        __builtin_prefetch(base +
                           positions[ahead < last_occurrence ? ahead : last_occurrence] * stride);
        const float weight = Numbers(base + positions[o] * stride, 0).Linear(0);
        sum += kScaled ? weight * a.scales[o] : weight;
      }
      a.linear[e - a.first] = sum;
    }
  }

  static void Run(const GatherArgs& args) {
    const bool scaled = args.scales != nullptr;
    if (args.arena.dim == 0 && args.linear != nullptr)
      return scaled ? Linear<true>(args) : Linear<false>(args);
    DispatchDim<Kernel>(args.arena.dim, scaled, args);
  }
};

}  // namespace

void GatherPool(const GatherArgs& args) {
  switch (args.arena.codec) {
    case RowCodec::kFp32:
      return GatherOf<Fp32Numbers>::Run(args);
    case RowCodec::kFp16:
      return GatherOf<Fp16Numbers>::Run(args);
    case RowCodec::kBf16:
      return GatherOf<Bf16Numbers>::Run(args);
    case RowCodec::kInt16:
      return GatherOf<IntNumbers<int16_t>>::Run(args);
    case RowCodec::kInt8:
      return GatherOf<IntNumbers<int8_t>>::Run(args);
  }
}

}  // namespace TERRACE_ISA
}  // namespace terrace
