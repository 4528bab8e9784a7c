#include "device/codec_kernels.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "device/codec_testing.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

constexpr int kRows = 19;       // more than two groups of lanes
constexpr int kPositions = 21;  // 4 and 7 are not among those of the rows

std::vector<uint32_t> Positions() {
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; positions.size() < kRows; ++i)
    if (const uint32_t p = i * 8 % kPositions; p != 4 && p != 7) positions.push_back(p);
  return positions;
}

std::vector<uint64_t> Words(int dim) {
  std::vector<uint64_t> words(kRows);
  for (int r = 0; r < kRows; ++r) words[r] = RandomBits(dim, r);
  return words;
}

// Of kRows rows; `unusual`: with those that have to be packed with care.
std::vector<float> NumbersOfRows(const RowFormat& format, int seed, bool unusual) {
  std::vector<float> numbers = MixedNumbers(kRows * format.numbers, seed, 40);
  numbers[numbers.size() / 2] = 1e-42f;
  if (!unusual) return numbers;
  numbers[0] = std::numeric_limits<float>::quiet_NaN();
  numbers[1] = std::numeric_limits<float>::infinity();
  numbers.back() = 1e7f;
  return numbers;
}

// run(format, stochastic, numbers, name)
template <typename Run>
void ForFormats(Run run) {
  for (RowCodec weights : kAllCodecs)
    for (RowCodec state : kAllCodecs)
      for (int dim = 1; dim <= 40; ++dim) {
        RowFormat format = OnePart(weights, dim, dim % 2);
        format.Add(state, dim, dim % 2, true);
        for (bool unusual : {false, true})
          for (bool stochastic : {false, true})
            run(format, stochastic, NumbersOfRows(format, dim, unusual),
                CodecName(weights) + " " + CodecName(state) + " " + std::to_string(dim));
      }
}

TEST(CodecKernels, GiveTheSameBitsAtEveryLevelAndTouchNothingElse) {
  const std::vector<uint32_t> positions = Positions();
  ForFormats([&](const RowFormat& format, bool stochastic, const std::vector<float>& numbers,
                 const std::string& name) {
    const int64_t stride = format.bytes + 8;
    const std::vector<uint64_t> words = Words(format.numbers);
    std::vector<std::byte> first;
    std::vector<float> first_decoded;
    int64_t first_saturated = 0;
    for (const CodecKernels* kernels : AllCodecKernels()) {
      std::vector<std::byte> arena(kPositions * stride, std::byte{0x5a});
      const PackedRows rows{arena.data(), stride, positions.data(), kRows};
      const int64_t saturated = kernels->encode(format, rows, RowParts::kAll, numbers.data(),
                                                stochastic ? words.data() : nullptr);
      std::vector<float> decoded(numbers.size() + 1, 55.0f);
      kernels->decode(format, rows, RowParts::kAll, decoded.data());
      ASSERT_EQ(decoded.back(), 55.0f);
      for (int p : {4, 7})
        for (int64_t b = 0; b < stride; ++b) ASSERT_EQ(arena[p * stride + b], std::byte{0x5a});
      for (uint32_t p : positions)
        for (int64_t b = format.bytes; b < stride; ++b)
          ASSERT_EQ(arena[p * stride + b], std::byte{0x5a});
      if (first.empty()) {
        first = arena;
        first_decoded = decoded;
        first_saturated = saturated;
      }
      ASSERT_EQ(arena, first) << name;
      ASSERT_TRUE(SameBits(decoded, first_decoded)) << name;
      ASSERT_EQ(saturated, first_saturated) << name;
    }
  });
}

TEST(CodecKernels, PackARowAlikeAloneAndAmongOthers) {
  const std::vector<uint32_t> positions = Positions();
  ForFormats([&](const RowFormat& format, bool stochastic, const std::vector<float>& numbers,
                 const std::string& name) {
    const std::vector<uint64_t> words = Words(format.numbers);
    std::vector<std::byte> arena(kPositions * format.bytes);
    Stream stream(nullptr);
    const int64_t saturated =
        EncodeRows(stream, format, {arena.data(), format.bytes, positions.data(), kRows},
                   RowParts::kAll, numbers.data(), stochastic ? words.data() : nullptr);
    int64_t sum = 0;
    for (int r = 0; r < kRows; ++r) {
      const auto from = numbers.begin() + r * format.numbers;
      Packed row = Pack(format, {from, from + format.numbers}, stochastic ? &words[r] : nullptr);
      sum += row.saturated;
      const auto in_arena = arena.begin() + positions[r] * format.bytes;
      ASSERT_TRUE(std::equal(row.bytes.begin(), row.bytes.end(), in_arena)) << name << " " << r;
    }
    ASSERT_EQ(saturated, sum) << name;
  });
}

TEST(CodecKernels, LeaveFloatsAloneIfAskedForCodes) {
  RowFormat format = OnePart(RowCodec::kFp32, 8, 1);
  format.Add(RowCodec::kInt8, 8, 1, false);
  format.Add(RowCodec::kFp32, 8, 1, true);
  const std::vector<float> numbers = NumbersOfRows(format, 1, false);
  const uint64_t word = 77;
  const Packed whole = Pack(format, {numbers.begin(), numbers.begin() + format.numbers}, &word);
  const uint32_t position = 0;
  for (const CodecKernels* kernels : AllCodecKernels()) {
    std::vector<std::byte> bytes(whole.bytes.size(), std::byte{0x5a});
    const PackedRows row{bytes.data(), format.bytes, &position, 1};
    EXPECT_EQ(kernels->encode(format, row, RowParts::kCoded, numbers.data(), &word), 0);
    std::vector<float> decoded(format.numbers, 55.0f);
    kernels->decode(format, row, RowParts::kCoded, decoded.data());
    const RowPart& coded = format.parts[1];
    for (int b = 0; b < format.bytes; ++b) {
      const bool in_coded = b >= coded.offset && b < coded.offset + coded.bytes();
      EXPECT_EQ(bytes[b], in_coded ? whole.bytes[b] : std::byte{0x5a}) << b;
    }
    for (int i = 0; i < format.numbers; ++i)
      EXPECT_EQ(decoded[i] == 55.0f, i < coded.first || i >= coded.first + coded.numbers()) << i;
  }
}

TEST(CodecKernels, RandomWordsAreTheBitsOfSeedKeyAndStep) {
  for (const CodecKernels* kernels : AllCodecKernels())
    for (int rows : {0, 1, 7, 32, 37}) {
      std::vector<uint64_t> keys(rows + 1, 5), words(rows + 1, 99);
      for (int r = 0; r < rows; ++r) keys[r] = RandomBits(4, r);
      kernels->random_words(~uint64_t{8}, 1000, keys.data(), rows, words.data());
      for (int r = 0; r < rows; ++r)
        EXPECT_EQ(words[r], RandomBits(~uint64_t{8}, keys[r], 1000)) << r << " of " << rows;
      EXPECT_EQ(words[rows], 99u);
    }
}

// A number's code depends on its place and its row, not on how many lanes are full.
TEST(CodecKernels, VectorBodyAndTailAgree) {
  const uint64_t word = RandomBits(8, 8);
  for (RowCodec codec : kAllCodecs) {
    std::vector<float> numbers = MixedNumbers(40, 6, 20);
    numbers[0] = 2;  // the largest of every prefix
    const std::vector<float> whole = Rounded(OnePart(codec, 40), numbers, &word);
    for (int n = 1; n < 40; ++n) {
      const std::vector<float> part =
          Rounded(OnePart(codec, n), {numbers.begin(), numbers.begin() + n}, &word);
      ASSERT_TRUE(SameBits(part, {whole.begin(), whole.begin() + n})) << CodecName(codec) << n;
    }
  }
}

}  // namespace
}  // namespace terrace
