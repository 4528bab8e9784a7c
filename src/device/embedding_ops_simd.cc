#include "device/embedding_kernels.h"
#include "device/vector_sum.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

// Occurrences ahead whose memory is prefetched.
constexpr int64_t kGradAhead = 64;
constexpr int64_t kLine = 64;

// Division of a 32-bit number by one below 2^31: (n * ceil(2^63 / d)) >> 63 is exact.
struct Divider {
  uint64_t factor;
  explicit Divider(int64_t d)
      : factor(((uint64_t{1} << 63) + static_cast<uint64_t>(d) - 1) / static_cast<uint64_t>(d)) {}
  TERRACE_HD int64_t operator()(int64_t n) const {
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(factor) * static_cast<uint64_t>(n)) >> 63);
  }
};

// Where the gradients of occurrences are.
struct GradSource {
  const RowGradArgs& a;
  const int dim;
  const bool contiguous;  // bags of an example follow those of the one before
  const Divider by_slots;
  const int64_t last_occurrence;

  GradSource(const RowGradArgs& args, int vector_dim)
      : a(args),
        dim(vector_dim),
        contiguous(args.pooled_grad.stride == int64_t{args.slots} * vector_dim),
        by_slots(args.slots),
        last_occurrence(int64_t{args.row_offsets[args.last]} - 1) {}

  TERRACE_HD const float* Vector(int64_t o) const {
    const int64_t bag = a.bags[o];
    if (contiguous) return a.pooled_grad.data + bag * dim;
    const int64_t example = by_slots(bag);
    return a.pooled_grad.data + example * a.pooled_grad.stride + (bag - example * a.slots) * dim;
  }
  TERRACE_HD void PrefetchAfter(int64_t o) const {
    const int64_t ahead = o + kGradAhead < last_occurrence ? o + kGradAhead : last_occurrence;
    const char* const vector = reinterpret_cast<const char*>(Vector(ahead));
    for (int64_t b = 0; b < dim * int64_t{sizeof(float)}; b += kLine)
      __builtin_prefetch(vector + b);
  }
};

template <int kDim, bool kScaled>
struct RowGradient {
  // Rows with fewer occurrences, in a batch of few slices, are summed slice by slice at once.
  static constexpr int64_t kFewSlices = 8;
  static constexpr int64_t kFewOccurrences = 48;
  static constexpr int kMaxNodes = 12;
  static constexpr int kNodeFloats = (kDim != 0 ? kDim : kMaxEmbeddingDim) + 1;

  static void Run(const RowGradArgs& a) {
    const int dim = kDim != 0 ? kDim : a.dim;
    const GradSource source(a, dim);
    const Divider by_slice(a.slice_examples);
    [[maybe_unused]] const bool few_slices = a.pooled_grad.rows <= kFewSlices * a.slice_examples;
    float* out = a.out;
    for (int64_t r = a.first; r < a.last; ++r, out += dim + a.linear) {
      if (a.prefetch.base != nullptr)
        PrefetchLines(a.prefetch.base + a.prefetch.positions[r] * a.prefetch.stride_bytes,
                      a.prefetch.row_bytes);
      const int64_t begin = a.row_offsets[r];
      const int64_t end = a.row_offsets[r + 1];
      if (end - begin <= 2) {  // two terms have one sum, whatever their slices
        SumRun(source, begin, end, out);
        continue;
      }
      if constexpr (kDim != 0) {
        if (few_slices && end - begin < kFewOccurrences) {
          SumInAllSlices(source, by_slice, begin, end, out);
          continue;
        }
      }
      SumAlongTree(source, by_slice, begin, end, out);
    }
  }

  TERRACE_HD static float LinearTerm(const GradSource& source, int64_t o) {
    const float grad = source.a.linear_grad[source.by_slots(source.a.bags[o])];
    return kScaled ? grad * source.a.scales[o] : grad;
  }

  // Occurrences in order, as within a slice.
  TERRACE_HD static void SumRun(const GradSource& source, int64_t begin, int64_t end, float* out) {
    const RowGradArgs& a = source.a;
    float linear_sum = -0.0f;  // x + -0 is x for every x
    VectorSum<kDim, kScaled>::Run(source.dim, begin, end, a.scales, out, [&](int64_t o) {
      source.PrefetchAfter(o);
      if (a.linear != 0) linear_sum += LinearTerm(source, o);
      return Fp32Numbers(source.Vector(o));
    });
    if (a.linear != 0) out[source.dim] = linear_sum;
  }

  // A sum for each slice, present or not, then the whole tree: no branch that depends on the data.
  // An absent slice is -0, and x + -0 is x for every x.
  TERRACE_HD static void SumInAllSlices(const GradSource& source, const Divider& by_slice,
                                        int64_t begin, int64_t end, float* out) {
    using Sum = VectorSum<kDim, kScaled>;
    const RowGradArgs& a = source.a;
    typename Sum::Part sums[kFewSlices][Sum::kParts];
    float linear_sums[kFewSlices];
    for (int s = 0; s < kFewSlices; ++s) {
      for (int p = 0; p < Sum::kParts; ++p) sums[s][p] = -typename Sum::Part{};
      linear_sums[s] = -0.0f;
    }
    for (int64_t o = begin; o < end; ++o) {
      source.PrefetchAfter(o);
      const int64_t s = by_slice(source.by_slots(a.bags[o]));
      const Fp32Numbers from(source.Vector(o));
      for (int p = 0; p < Sum::kParts; ++p) {
        typename Sum::Part x;
        Sum::Term(from, p, a.scales, o, x);
        sums[s][p] += x;
      }
      if (a.linear != 0) linear_sums[s] += LinearTerm(source, o);
    }
    for (int step = 1; step < kFewSlices; step *= 2)
      for (int s = 0; s < kFewSlices; s += 2 * step) {
        for (int p = 0; p < Sum::kParts; ++p) sums[s][p] += sums[s + step][p];
        linear_sums[s] += linear_sums[s + step];
      }
    __builtin_memcpy(out, sums[0], sizeof(sums[0]));
    if (a.linear != 0) out[kDim] = linear_sums[0];
  }

  // One slice after another. Sums that wait for their siblings are nodes, at most one for each
  // level of the tree; node 0 is the output.
  static void SumAlongTree(const GradSource& source, const Divider& by_slice, int64_t begin,
                           int64_t end, float* out) {
    const RowGradArgs& a = source.a;
    const int weights = source.dim + a.linear;
    float scratch[kMaxNodes][kNodeFloats];
    const auto node = [&](int i) { return i == 0 ? out : scratch[i]; };
    const auto fold_last = [&](int nodes) {
      const float* const right = scratch[nodes - 1];
      float* const left = node(nodes - 2);
      TERRACE_INDEPENDENT
      for (int i = 0; i < weights; ++i) left[i] += right[i];
    };
    int levels[kMaxNodes];  // where the tree parts node i - 1 from node i; they fall
    int nodes = 0;
    int64_t last_slice = 0;
    for (int64_t o = begin; o < end;) {
      const int64_t slice = by_slice(source.by_slots(a.bags[o]));
      const int64_t slice_end_bag = (slice + 1) * a.slice_examples * a.slots;
      int64_t run_end = o + 1;
      while (run_end < end && a.bags[run_end] < slice_end_bag) ++run_end;
      if (nodes > 0) {
        const int level = 63 - __builtin_clzll(static_cast<uint64_t>(slice ^ last_slice));
        for (; nodes > 1 && levels[nodes - 1] < level; --nodes) fold_last(nodes);
        levels[nodes] = level;
      }
      SumRun(source, o, run_end, node(nodes));
      ++nodes;
      last_slice = slice;
      o = run_end;
    }
    for (; nodes > 1; --nodes) fold_last(nodes);
  }
};

// The same for rows that are a linear weight alone, in a batch of few slices.
template <bool kScaled>
void LinearGradient(const RowGradArgs& a) {
  constexpr int kSlices = 8;
  const Divider by_slots(a.slots);
  const Divider by_slice(a.slice_examples * a.slots);
  const auto term = [&](int64_t o) {
    const float grad = a.linear_grad[by_slots(a.bags[o])];
    return kScaled ? grad * a.scales[o] : grad;
  };
  for (int64_t r = a.first; r < a.last; ++r) {
    if (a.prefetch.base != nullptr)
      PrefetchLines(a.prefetch.base + a.prefetch.positions[r] * a.prefetch.stride_bytes,
                    a.prefetch.row_bytes);
    const int64_t begin = a.row_offsets[r];
    const int64_t end = a.row_offsets[r + 1];
    if (end - begin == 1) {  // as most rows
      a.out[r - a.first] = term(begin);
      continue;
    }
    float sums[kSlices];
    for (float& sum : sums) sum = -0.0f;
    for (int64_t o = begin; o < end; ++o) sums[by_slice(a.bags[o])] += term(o);
    for (int step = 1; step < kSlices; step *= 2)
      for (int s = 0; s < kSlices; s += 2 * step) sums[s] += sums[s + step];
    a.out[r - a.first] = sums[0];
  }
}

void SumRowGradients(const RowGradArgs& args) {
  if (args.dim == 0 && args.pooled_grad.rows <= 8 * args.slice_examples)
    return args.scales != nullptr ? LinearGradient<true>(args) : LinearGradient<false>(args);
  DispatchDim<RowGradient>(args.dim, args.scales != nullptr, args);
}

}  // namespace

void GatherPool(const GatherArgs& args);  // gather_simd.cc

const EmbeddingKernels kEmbeddingKernels = {
    .gather_pool = GatherPool,
    .sum_row_gradients = SumRowGradients,
};

}  // namespace TERRACE_ISA
}  // namespace terrace
