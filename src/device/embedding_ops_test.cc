#include "device/embedding_ops.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/slice_tree.h"
#include "device/embedding_kernels.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

std::vector<const EmbeddingKernels*> AllEmbeddingKernels() {
  std::vector<const EmbeddingKernels*> tables = {&isa_baseline::kEmbeddingKernels};
#if defined(TERRACE_HAVE_X86_ISA)
  if (CurrentIsa() >= IsaLevel::kAvx2) tables.push_back(&isa_avx2::kEmbeddingKernels);
  if (CurrentIsa() >= IsaLevel::kAvx512) tables.push_back(&isa_avx512::kEmbeddingKernels);
#endif
  return tables;
}

// A random batch over an arena of random rows; row 0 is zero.
struct TestBatch {
  int dim, linear, slots;
  int64_t examples;
  int64_t stride_floats;
  std::vector<float> arena;
  std::vector<uint32_t> offsets = {0};
  std::vector<uint32_t> positions;
  std::vector<float> scales;  // or empty

  TestBatch(int d, int l, int s, int64_t n, int64_t rows, int max_bag, bool scaled, uint64_t seed)
      : dim(d), linear(l), slots(s), examples(n), stride_floats((d + l) / 4 * 4 + 8) {
    arena = RandomFloats(rows * stride_floats, seed);
    std::fill_n(arena.begin(), stride_floats, 0.0f);
    RandomStream random(seed, 1);
    for (int64_t bag = 0; bag < n * s; ++bag) {
      // Small positions are the frequent ones.
      for (uint64_t k = BelowN(random.Next(), max_bag + 1); k > 0; --k)
        positions.push_back(
            static_cast<uint32_t>(BelowN(random.Next(), 1 + BelowN(random.Next(), rows))));
      offsets.push_back(static_cast<uint32_t>(positions.size()));
    }
    if (scaled) scales = RandomFloats(static_cast<int64_t>(positions.size()), seed + 1, 2);
  }
  float Scale(size_t o) const { return scales.empty() ? 1.0f : scales[o]; }
  const float* Row(uint32_t position) const { return arena.data() + position * stride_floats; }

  GatherArgs Args(int64_t first, int64_t last, Matrix pooled, float* out_linear) {
    GatherArgs args;
    args.arena = {reinterpret_cast<std::byte*>(arena.data()), stride_floats * 4, dim, linear};
    args.slots = slots;
    args.first = first;
    args.last = last;
    args.bag_offsets = offsets.data();
    args.positions = positions.data();
    args.scales = scales.empty() ? nullptr : scales.data();
    args.pooled = pooled;
    args.linear = linear != 0 ? out_linear : nullptr;
    return args;
  }
};

TestBatch RandomBatch() {
  const int linear = *rc::gen::inRange(0, 2);
  return TestBatch(*rc::gen::inRange(0, 41), linear, *rc::gen::inRange(1, 6),
                   *rc::gen::inRange(0, 40), *rc::gen::element(2, 30, 1000),
                   *rc::gen::element(1, 2, 6), *rc::gen::arbitrary<bool>(),
                   *rc::gen::inRange(0, 1000));
}

TEST(GatherPool, SumsTheRowsOfEachBagInOrder) {
  ASSERT_TRUE(rc::check([] {
    TestBatch batch = RandomBatch();
    const int64_t first = *rc::gen::inRange<int64_t>(0, batch.examples + 1);
    const int64_t last = *rc::gen::inRange<int64_t>(first, batch.examples + 1);
    const int64_t width = int64_t{batch.slots} * batch.dim;
    std::vector<float> wanted((last - first) * width, 0.0f);
    std::vector<float> wanted_linear = RandomFloats(last - first, 3);
    for (int64_t e = first; e < last; ++e)
      for (int j = 0; j < batch.slots; ++j) {
        const int64_t bag = e * batch.slots + j;
        float* const out = wanted.data() + (e - first) * width + j * batch.dim;
        for (uint32_t o = batch.offsets[bag]; o < batch.offsets[bag + 1]; ++o) {
          const float* const row = batch.Row(batch.positions[o]);
          for (int i = 0; i < batch.dim; ++i) {
            const float term = row[i] * batch.Scale(o);
            out[i] = o == batch.offsets[bag] ? term : out[i] + term;
          }
          if (batch.linear != 0) wanted_linear[e - first] += row[batch.dim] * batch.Scale(o);
        }
      }
    for (const EmbeddingKernels* kernels : AllEmbeddingKernels()) {
      TestMatrix pooled(last - first, width, 9);
      std::vector<float> got_linear = RandomFloats(last - first, 3);
      kernels->gather_pool(batch.Args(first, last, pooled.view(), got_linear.data()));
      RC_ASSERT(SameBits(pooled.Elements(), wanted));
      RC_ASSERT(SameBits(got_linear, wanted_linear));
    }
  }));
}

TEST(GatherPool, GivesZerosForEmptyBagsAndTheDefaultRow) {
  TestBatch batch(8, 1, 2, 2, 3, 0, false, 1);
  batch.positions = {0, 0};
  batch.offsets = {0, 0, 1, 2, 2};
  TestMatrix pooled(2, 16, 5);
  std::vector<float> linear = {3, 4};
  Stream stream(nullptr);
  GatherPool(stream, batch.Args(0, 2, pooled.view(), linear.data()));
  EXPECT_EQ(pooled.Elements(), std::vector<float>(32, 0.0f));
  EXPECT_EQ(linear, (std::vector<float>{3, 4}));
}

// A plan and the gradients it sums.
struct TestGrads {
  int dim, linear, slots;
  int64_t examples, slice_examples;
  std::vector<uint32_t> row_offsets = {0};
  std::vector<uint32_t> bags;
  std::vector<float> scales;       // or empty
  int64_t stride;                  // of pooled_grad
  std::vector<float> pooled_grad;  // [examples, stride]
  std::vector<float> linear_grad;

  // `margin` more columns than the bags need: other tables' gradients.
  TestGrads(int d, int l, int s, int64_t n, int64_t slice, int rows, bool scaled, uint64_t seed,
            int margin = 0)
      : dim(d),
        linear(l),
        slots(s),
        examples(n),
        slice_examples(slice),
        stride(int64_t{s} * d + margin),
        pooled_grad(RandomFloats(n * stride, seed)),
        linear_grad(RandomFloats(n, seed + 1)) {
    RandomStream random(seed, 2);
    for (int r = 0; r < rows; ++r) {
      // Once, a few times, or in nearly every bag; a bag may hold a key twice.
      const uint64_t most[] = {1, 4, 20, static_cast<uint64_t>(n * s)};
      const uint64_t count = 1 + BelowN(random.Next(), most[BelowN(random.Next(), 4)]);
      for (uint64_t k = 0; k < count; ++k)
        bags.push_back(static_cast<uint32_t>(BelowN(random.Next(), n * s)));
      std::sort(bags.end() - static_cast<int64_t>(count), bags.end());
      row_offsets.push_back(static_cast<uint32_t>(bags.size()));
    }
    if (scaled) scales = RandomFloats(static_cast<int64_t>(bags.size()), seed + 3, 2);
  }
  int64_t rows() const { return static_cast<int64_t>(row_offsets.size()) - 1; }

  RowGradArgs Args(int64_t first, int64_t last, float* out) {
    RowGradArgs args;
    args.dim = dim;
    args.linear = linear;
    args.slots = slots;
    args.first = first;
    args.last = last;
    args.row_offsets = row_offsets.data();
    args.bags = bags.data();
    args.scales = scales.empty() ? nullptr : scales.data();
    args.slice_examples = slice_examples;
    args.pooled_grad = {pooled_grad.data(), examples, int64_t{slots} * dim, stride};
    args.linear_grad = linear != 0 ? linear_grad.data() : nullptr;
    args.out = out;
    return args;
  }

  // The definition: a sum for each slice, all slices of the batch joined, absent ones skipped.
  std::vector<float> Sum(int64_t row) const {
    std::map<int64_t, std::vector<float>> sums;
    for (uint32_t o = row_offsets[row]; o < row_offsets[row + 1]; ++o) {
      const int64_t example = bags[o] / slots;
      const int64_t column = bags[o] % slots * dim;
      const float scale = scales.empty() ? 1.0f : scales[o];
      std::vector<float> terms;
      for (int i = 0; i < dim; ++i)
        terms.push_back(pooled_grad[example * stride + column + i] * scale);
      if (linear != 0) terms.push_back(linear_grad[example] * scale);
      Add(terms, &sums[example / slice_examples]);
    }
    const int64_t slices = SliceShape{slice_examples}.Count(examples);
    JoinSlices(slices, [&](int64_t left, int64_t right) {
      if (sums.contains(right)) Add(sums[right], &sums[left]);
    });
    return sums[0];
  }
  static void Add(const std::vector<float>& terms, std::vector<float>* sum) {
    if (sum->empty())
      *sum = terms;
    else
      for (size_t i = 0; i < terms.size(); ++i) (*sum)[i] += terms[i];
  }
};

TEST(SumRowGradients, FollowsTheSliceTree) {
  ASSERT_TRUE(rc::check([] {
    const int dim = *rc::gen::inRange(0, 41);
    const int64_t examples = *rc::gen::inRange(1, 200);
    TestGrads grads(dim, *rc::gen::inRange(dim == 0 ? 1 : 0, 2), *rc::gen::inRange(1, 8), examples,
                    *rc::gen::element<int64_t>(1, 2, 7, 25, 200), *rc::gen::inRange(1, 12),
                    *rc::gen::arbitrary<bool>(), *rc::gen::inRange(0, 1000),
                    *rc::gen::element(0, 5));
    std::vector<float> wanted;
    for (int64_t r = 0; r < grads.rows(); ++r)
      for (float x : grads.Sum(r)) wanted.push_back(x);
    const int64_t width = dim + grads.linear;
    for (const EmbeddingKernels* kernels : AllEmbeddingKernels()) {
      // Any split of the rows between calls gives the same, with and without prefetched rows.
      const int64_t cut = *rc::gen::inRange<int64_t>(0, grads.rows() + 1);
      std::vector<float> got(grads.rows() * width + 1, 55.0f);
      RowGradArgs args = grads.Args(0, cut, got.data());
      const std::vector<uint32_t> positions(grads.rows(), 1);
      args.prefetch = {reinterpret_cast<const std::byte*>(got.data()), 4, 4, positions.data()};
      kernels->sum_row_gradients(args);
      kernels->sum_row_gradients(grads.Args(cut, grads.rows(), got.data() + cut * width));
      RC_ASSERT(got.back() == 55.0f);
      got.pop_back();
      RC_ASSERT(SameBits(got, wanted));
    }
  }));
}

// The two examples of the definition, spelled out.
TEST(SumRowGradients, SkipsAbsentSlices) {
  TestGrads grads(0, 1, 1, 8, 1, 0, false, 1);  // eight slices of one example
  grads.linear_grad = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 1e8f, 0.8f};
  grads.bags = {1, 3, 0, 1, 2, 0, 3, 5, 6};
  grads.row_offsets = {0, 2, 5, 9};
  std::vector<float> out(3);
  Stream stream(nullptr);
  SumRowGradients(stream, grads.Args(0, 3, out.data()));
  const std::vector<float>& s = grads.linear_grad;
  EXPECT_EQ(out[0], s[1] + s[3]);
  EXPECT_EQ(out[1], (s[0] + s[1]) + s[2]);
  EXPECT_EQ(out[2], (s[0] + s[3]) + (s[5] + s[6]));
}

TEST(SumRowGradients, TakesAThousandSlicesAndTheWidestRows) {
  TestGrads grads(512, 1, 1, 1024, 1, 0, true, 4);
  for (uint32_t bag = 0; bag < 1024; ++bag)
    if (RandomBits(1, bag) % 4 != 0) grads.bags.push_back(bag);
  grads.row_offsets.push_back(static_cast<uint32_t>(grads.bags.size()));
  grads.scales = RandomFloats(static_cast<int64_t>(grads.bags.size()), 5);
  std::vector<float> out(513);
  Stream stream(nullptr);
  SumRowGradients(stream, grads.Args(0, 1, out.data()));
  EXPECT_TRUE(SameBits(out, grads.Sum(0)));
}

}  // namespace
}  // namespace terrace
