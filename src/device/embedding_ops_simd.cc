#include "device/embedding_kernels.h"
#include "device/kernel_macros.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

// Occurrences ahead whose memory is prefetched.
constexpr int64_t kGatherAhead = 16;
constexpr int64_t kGradAhead = 16;
constexpr int64_t kLine = 64;

TERRACE_HD void PrefetchLines(const void* from, int64_t bytes) {
  const char* const begin = static_cast<const char*>(from);
  for (int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(begin + b);
  __builtin_prefetch(begin + bytes - 1);
}

// The sum of the vectors of occurrences [begin, end), in registers for the common dims. `at(o)` is
// the vector of occurrence o. A sum starts with its first term, not with 0.
template <int kDim, bool kScaled>
struct VectorSum {
  static constexpr int kWidth = kDim % 8 == 0 ? 8 : 4;
  static constexpr int kParts = kDim / kWidth;
  typedef float Part __attribute__((vector_size(kWidth * sizeof(float))));

  template <typename At>
  TERRACE_HD static void Run(int, int64_t begin, int64_t end, const float* scales, float* out,
                             At at) {
    const auto term = [&](const float* from, int p, int64_t o, Part& x) {
      __builtin_memcpy(&x, from + p * kWidth, sizeof(Part));
      if constexpr (kScaled) x *= scales[o];
    };
    Part sum[kParts];
    const float* from = at(begin);
    for (int p = 0; p < kParts; ++p) term(from, p, begin, sum[p]);
    for (int64_t o = begin + 1; o < end; ++o) {
      from = at(o);
      for (int p = 0; p < kParts; ++p) {
        Part x;
        term(from, p, o, x);
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
    const float* from = at(begin);
    TERRACE_INDEPENDENT
    for (int i = 0; i < dim; ++i) out[i] = kScaled ? from[i] * scales[begin] : from[i];
    for (int64_t o = begin + 1; o < end; ++o) {
      from = at(o);
      TERRACE_INDEPENDENT
      for (int i = 0; i < dim; ++i) out[i] += kScaled ? from[i] * scales[o] : from[i];
    }
  }
};

// The kernel for a dim and for scales or none.
template <template <int, bool> typename Kernel, typename Args>
void Dispatch(int dim, bool scaled, const Args& args) {
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

template <int kDim, bool kScaled>
struct Gather {
  static void Run(const GatherArgs& a) {
    const char* const base = reinterpret_cast<const char*>(a.arena.base);
    const int64_t stride = a.arena.stride_bytes;
    const int dim = kDim != 0 ? kDim : a.arena.dim;
    const int64_t bytes = (dim + a.arena.linear) * static_cast<int64_t>(sizeof(float));
    const int64_t last_occurrence = int64_t{a.bag_offsets[a.last * a.slots]} - 1;
    const auto row = [=, positions = a.positions](int64_t o) {
      return reinterpret_cast<const float*>(base + positions[o] * stride);
    };
    const auto row_prefetching = [=](int64_t o) {
      const int64_t ahead = o + kGatherAhead;
      PrefetchLines(row(ahead < last_occurrence ? ahead : last_occurrence), bytes);
      return row(o);
    };
    for (int64_t e = a.first; e < a.last; ++e) {
      const uint32_t* const offsets = a.bag_offsets + e * a.slots;
      float* out = a.pooled.data + (e - a.first) * a.pooled.stride;
      for (int j = 0; j < a.slots; ++j, out += dim) {
        if (offsets[j] == offsets[j + 1])
          __builtin_memset(out, 0, dim * sizeof(float));
        else
          VectorSum<kDim, kScaled>::Run(dim, offsets[j], offsets[j + 1], a.scales, out,
                                        row_prefetching);
      }
      if (a.arena.linear == 0) continue;
      float sum = a.linear[e - a.first];
      for (int64_t o = offsets[0]; o < offsets[a.slots]; ++o)
        sum += kScaled ? row(o)[dim] * a.scales[o] : row(o)[dim];
      a.linear[e - a.first] = sum;
    }
  }
};

// Division of a 32-bit number by one below 2^31: (n * ceil(2^63 / d)) >> 63 is exact.
struct Divider {
  uint64_t factor;
  explicit Divider(int64_t d)
      : factor(((uint64_t{1} << 63) + static_cast<uint64_t>(d) - 1) / static_cast<uint64_t>(d)) {}
  TERRACE_HD int64_t operator()(uint32_t n) const {
    return static_cast<int64_t>((static_cast<unsigned __int128>(factor) * n) >> 63);
  }
};

template <int kDim, bool kScaled>
struct RowGradient {
  // The sums of slices that wait for their siblings; at most one for each level of the tree, and
  // node 0 is the output.
  static constexpr int kMaxNodes = 12;
  static constexpr int kNodeFloats = (kDim != 0 ? kDim : kMaxEmbeddingDim) + 1;

  static void Run(const RowGradArgs& a) {
    const int dim = kDim != 0 ? kDim : a.dim;
    const int weights = dim + a.linear;
    const Divider by_slots(a.slots);
    const int64_t slice_bags = a.slice_examples * a.slots;
    const int64_t last_occurrence = int64_t{a.row_offsets[a.last]} - 1;
    const auto at = [=](int64_t o) {
      const int64_t example = by_slots(a.bags[o]);
      return a.pooled_grad.data + example * a.pooled_grad.stride +
             (a.bags[o] - example * a.slots) * dim;
    };
    const auto at_prefetching = [=](int64_t o) {
      const int64_t ahead = o + kGradAhead;
      PrefetchLines(at(ahead < last_occurrence ? ahead : last_occurrence), dim * 4);
      return at(o);
    };
    float scratch[kMaxNodes][kNodeFloats];
    float* out = a.out;
    for (int64_t r = a.first; r < a.last; ++r, out += weights) {
      // levels[i]: where the tree parts node i - 1 from node i. They fall.
      int levels[kMaxNodes];
      int nodes = 0;
      int64_t last_slice = 0;
      for (int64_t o = a.row_offsets[r]; o < a.row_offsets[r + 1];) {
        const int64_t slice = a.bags[o] / slice_bags;
        int64_t end = o + 1;
        while (end < a.row_offsets[r + 1] && a.bags[end] < (slice + 1) * slice_bags) ++end;
        if (nodes > 0) {
          const int level = 63 - __builtin_clzll(static_cast<uint64_t>(slice ^ last_slice));
          for (; nodes > 1 && levels[nodes - 1] < level; --nodes)
            Fold(weights, scratch[nodes - 1], nodes == 2 ? out : scratch[nodes - 2]);
          levels[nodes] = level;
        }
        float* const node = nodes == 0 ? out : scratch[nodes];
        VectorSum<kDim, kScaled>::Run(dim, o, end, a.scales, node, at_prefetching);
        if (a.linear != 0) {
          float sum = LinearTerm(a, by_slots, o);
          for (int64_t i = o + 1; i < end; ++i) sum += LinearTerm(a, by_slots, i);
          node[dim] = sum;
        }
        ++nodes;
        last_slice = slice;
        o = end;
      }
      for (; nodes > 1; --nodes)
        Fold(weights, scratch[nodes - 1], nodes == 2 ? out : scratch[nodes - 2]);
    }
  }

  TERRACE_HD static float LinearTerm(const RowGradArgs& a, const Divider& by_slots, int64_t o) {
    const float grad = a.linear_grad[by_slots(a.bags[o])];
    return kScaled ? grad * a.scales[o] : grad;
  }
  TERRACE_HD static void Fold(int weights, const float* right, float* left) {
    TERRACE_INDEPENDENT
    for (int i = 0; i < weights; ++i) left[i] += right[i];
  }
};

void GatherPool(const GatherArgs& args) {
  Dispatch<Gather>(args.arena.dim, args.scales != nullptr, args);
}
void SumRowGradients(const RowGradArgs& args) {
  Dispatch<RowGradient>(args.dim, args.scales != nullptr, args);
}

}  // namespace

const EmbeddingKernels kEmbeddingKernels = {
    .gather_pool = GatherPool,
    .sum_row_gradients = SumRowGradients,
};

}  // namespace TERRACE_ISA
}  // namespace terrace
