// GatherPool over packed rows: what DecodeRows gives for each row, summed in order.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "device/codec_testing.h"
#include "device/embedding_kernels.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

std::vector<const EmbeddingKernels*> Kernels() {
  std::vector<const EmbeddingKernels*> tables = {&isa_baseline::kEmbeddingKernels};
#if defined(TERRACE_HAVE_X86_ISA)
  if (CurrentIsa() >= IsaLevel::kAvx2) tables.push_back(&isa_avx2::kEmbeddingKernels);
  if (CurrentIsa() >= IsaLevel::kAvx512) tables.push_back(&isa_avx512::kEmbeddingKernels);
#endif
  return tables;
}

constexpr int64_t kRows = 50;

// Packed rows and what they unpack to; row 0 is zero. One row in three has tiny numbers.
struct PackedTable {
  RowFormat format;
  int64_t stride;
  std::vector<std::byte> arena;
  std::vector<float> numbers;  // [kRows, format.numbers]

  PackedTable(RowCodec codec, int dim, int linear)
      : format(OnePart(codec, dim, linear)),
        stride(format.bytes + 12),
        arena(kRows * stride),
        numbers(kRows * format.numbers) {
    std::vector<float> start = RandomFloats(kRows * format.numbers, dim);
    std::vector<uint32_t> positions(kRows);
    for (int64_t r = 0; r < kRows; ++r) {
      positions[r] = static_cast<uint32_t>(r);
      for (int i = 0; i < format.numbers; ++i)
        start[r * format.numbers + i] *= r == 0 ? 0.0f : r % 3 == 1 ? 1e-5f : 1.0f;
    }
    start.back() = std::numeric_limits<float>::quiet_NaN();
    const PackedRows rows{arena.data(), stride, positions.data(), kRows};
    Stream stream(nullptr);
    EXPECT_EQ(EncodeRows(stream, format, rows, RowParts::kAll, start.data(), nullptr), 0);
    DecodeRows(stream, format, rows, RowParts::kAll, numbers.data());
  }
};

void ExpectSums(RowCodec codec, int dim, int linear, bool scaled) {
  SCOPED_TRACE(CodecName(codec) + " dim " + std::to_string(dim));
  PackedTable table(codec, dim, linear);
  constexpr int kSlots = 3;
  constexpr int64_t kExamples = 7;
  std::vector<uint32_t> offsets = {0};
  std::vector<uint32_t> positions;
  RandomStream random(dim, 4);
  for (int64_t bag = 0; bag < kExamples * kSlots; ++bag) {
    for (uint64_t k = BelowN(random.Next(), 4); k > 0; --k)
      positions.push_back(static_cast<uint32_t>(BelowN(random.Next(), kRows)));
    offsets.push_back(static_cast<uint32_t>(positions.size()));
  }
  const std::vector<float> scales = RandomFloats(static_cast<int64_t>(positions.size()), 8, 2);

  std::vector<float> wanted(kExamples * kSlots * dim, 0.0f);
  std::vector<float> wanted_linear(kExamples, 0.5f);
  for (int64_t bag = 0; bag < kExamples * kSlots; ++bag)
    for (uint32_t o = offsets[bag]; o < offsets[bag + 1]; ++o) {
      const float* const row = table.numbers.data() + positions[o] * table.format.numbers;
      const float scale = scaled ? scales[o] : 1.0f;
      for (int i = 0; i < dim; ++i) {
        float& out = wanted[bag * dim + i];
        out = o == offsets[bag] ? row[i] * scale : out + row[i] * scale;
      }
      if (linear != 0) wanted_linear[bag / kSlots] += row[dim] * scale;
    }

  GatherArgs args;
  args.arena = {table.arena.data(), table.stride, dim, linear, codec};
  args.slots = kSlots;
  args.last = kExamples;
  args.bag_offsets = offsets.data();
  args.positions = positions.data();
  args.scales = scaled ? scales.data() : nullptr;
  for (const EmbeddingKernels* kernels : Kernels()) {
    TestMatrix pooled(kExamples, kSlots * dim, 3);
    std::vector<float> got_linear(kExamples, 0.5f);
    args.pooled = pooled.view();
    args.linear = linear != 0 ? got_linear.data() : nullptr;
    kernels->gather_pool(args);
    ASSERT_TRUE(SameBits(pooled.Elements(), wanted));
    ASSERT_TRUE(SameBits(got_linear, wanted_linear));
  }
}

TEST(GatherPool, SumsPackedRowsAsTheyUnpack) {
  for (RowCodec codec : kAllCodecs)
    for (int dim = 0; dim <= 40; ++dim)
      for (int linear : {0, 1})
        for (bool scaled : {false, true}) {
          if (dim == 0 && (linear == 0 || HasScale(codec))) continue;
          ExpectSums(codec, dim, linear, scaled);
          if (HasFatalFailure()) return;
        }
}

}  // namespace
}  // namespace terrace
