#include "device/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "device/codec_testing.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float LargestSize(const std::vector<float>& numbers) {
  float largest = 0;
  for (float x : numbers)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

// The distance of the two codes around x, in a row whose largest size is given.
double StepAt(RowCodec codec, double x, float largest) {
  const auto power = [&](int bits, int least) {
    const int exponent = x == 0 ? -1000 : std::ilogb(x);
    return std::ldexp(1.0, std::max(exponent - bits, least));
  };
  switch (codec) {
    case RowCodec::kFp32:
      return 0;
    case RowCodec::kFp16:
      return power(10, -24);
    case RowCodec::kBf16:
      return power(7, -133);
    case RowCodec::kInt16:
      return std::max(largest / 32767.0, 0x1p-126);
    case RowCodec::kInt8:
      return std::max(largest / 127.0, 0x1p-126);
  }
  return 0;
}

TEST(RowFormat, PutsScaleAndLinearWeightBehindTheCodes) {
  struct Case {
    RowCodec codec;
    int vector, linear, coded, plain, bytes;
  };
  const Case cases[] = {
      {RowCodec::kFp32, 8, 1, 0, 9, 36},  {RowCodec::kFp16, 8, 1, 9, 0, 20},
      {RowCodec::kBf16, 7, 0, 7, 0, 16},  {RowCodec::kInt16, 8, 1, 8, 1, 24},
      {RowCodec::kInt16, 3, 0, 3, 0, 12}, {RowCodec::kInt8, 8, 1, 8, 1, 16},
      {RowCodec::kInt8, 5, 1, 5, 1, 16},  {RowCodec::kInt8, 1, 0, 1, 0, 8},
      {RowCodec::kInt8, 0, 2, 0, 2, 8},
  };
  for (const Case& c : cases) {
    const RowFormat format = OnePart(c.codec, c.vector, c.linear);
    EXPECT_EQ(format.parts[0].coded, c.coded) << CodecName(c.codec);
    EXPECT_EQ(format.parts[0].plain, c.plain) << CodecName(c.codec);
    EXPECT_EQ(format.bytes, c.bytes) << CodecName(c.codec);
    EXPECT_EQ(format.numbers, c.vector + c.linear);
    EXPECT_EQ(format.packed, c.coded > 0);
  }
  RowFormat row = OnePart(RowCodec::kInt8, 5, 1);
  row.Add(RowCodec::kFp16, 5, 1, true);
  EXPECT_EQ(row.parts[1].first, 6);
  EXPECT_EQ(row.parts[1].offset, 16);
  EXPECT_EQ(row.bytes, 28);
  EXPECT_EQ(row.numbers, 12);
}

TEST(Codec, NumbersStayWithinAStepOfThemselvesOrHalfOneToTheNearest) {
  for (RowCodec codec : kAllCodecs)
    for (int dim = 1; dim <= 40; ++dim)
      for (uint64_t seed = 0; seed < 30; ++seed) {
        const RowFormat format = OnePart(codec, dim, seed % 2);
        const std::vector<float> numbers = MixedNumbers(format.numbers, seed, 30);
        const std::vector<float> vector(numbers.begin(), numbers.begin() + dim);
        const float largest = LargestSize(vector);
        const uint64_t word = RandomBits(seed, dim);
        const std::vector<float> nearest = Rounded(format, numbers, nullptr);
        const std::vector<float> stochastic = Rounded(format, numbers, &word);
        for (int i = 0; i < format.numbers; ++i) {
          const bool plain = i >= format.parts[0].coded;
          const double step = plain ? 0 : StepAt(codec, numbers[i], largest);
          // A quotient of int16 has few bits behind the point.
          const double slack = 1 + (HasScale(codec) ? 0x1p-7 : 0);
          ASSERT_LE(std::abs(double{nearest[i]} - numbers[i]), step / 2 * slack)
              << CodecName(codec) << " dim " << dim << " number " << i;
          ASSERT_LE(std::abs(double{stochastic[i]} - numbers[i]), step * slack)
              << CodecName(codec) << " dim " << dim << " number " << i;
          ASSERT_TRUE(numbers[i] != 0 || stochastic[i] == 0);
        }
      }
}

// int8 and int16, to the nearest: D = max|x| / 127, code = floor(x / D + 0.5).
template <typename Code>
void ExpectCodesOfTheDefinition(RowCodec codec, float top) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> numbers = MixedNumbers(13, seed, 12);
    const RowFormat format = OnePart(codec, 13);
    const Packed row = Pack(format, numbers, nullptr);
    const float step = LargestSize(numbers) / top;
    float scale;
    std::memcpy(&scale, row.bytes.data() + CodesBytes(codec, 13), sizeof(scale));
    ASSERT_EQ(scale, step);
    for (size_t i = 0; i < numbers.size(); ++i) {
      Code code;
      std::memcpy(&code, row.bytes.data() + i * sizeof(Code), sizeof(Code));
      ASSERT_EQ(code, std::min<double>(std::floor(double{numbers[i] / step} + 0.5), top)) << i;
    }
  }
}

TEST(Codec, IntegersAreFloorsOfQuotients) {
  ExpectCodesOfTheDefinition<int8_t>(RowCodec::kInt8, 127);
  ExpectCodesOfTheDefinition<int16_t>(RowCodec::kInt16, 32767);
}

TEST(Codec, CodesStayAsTheyAre) {
  for (RowCodec codec : kAllCodecs)
    for (uint64_t seed = 0; seed < 200; ++seed) {
      // A scale that is a power of two: no quotient is rounded.
      std::vector<float> numbers = RandomFloats(19, seed, 127);
      for (float& x : numbers) x = std::floor(x);
      numbers[3] = codec == RowCodec::kInt16 ? -32767.0f : 127.0f;
      const RowFormat format = OnePart(codec, 19);
      const uint64_t word = RandomBits(seed, 1);
      ASSERT_EQ(Rounded(format, numbers, &word), numbers) << CodecName(codec);
      ASSERT_EQ(Rounded(format, numbers, nullptr), numbers) << CodecName(codec);
    }
}

TEST(Codec, StochasticRoundingIsUnbiased) {
  constexpr int kDraws = 20'000;
  for (RowCodec codec : {RowCodec::kFp16, RowCodec::kBf16, RowCodec::kInt16, RowCodec::kInt8}) {
    const RowFormat format = OnePart(codec, 11);
    std::vector<float> numbers = RandomFloats(11, 3, 0.1f);
    numbers[2] = 1e-6f;  // far below a step of int8 and int16; a few steps of fp16
    numbers[7] = -2e-6f;
    numbers[9] = 0.5f;
    std::vector<double> sums(11);
    for (uint64_t step = 0; step < kDraws; ++step) {
      const uint64_t word = RandomBits(77, 5, step);
      const std::vector<float> got = Rounded(format, numbers, &word);
      for (int i = 0; i < 11; ++i) sums[i] += got[i];
    }
    for (int i = 0; i < 11; ++i) {
      const double step = StepAt(codec, numbers[i], 0.5f);
      // The deviation of one draw is at most half a step.
      const double allowed = 4.5 * step / 2 / std::sqrt(kDraws) + 1e-9;
      EXPECT_NEAR(sums[i] / kDraws, numbers[i], allowed) << CodecName(codec) << " number " << i;
    }
  }
}

// What the paper is about: many updates, each smaller than half a step.
TEST(Codec, TinyUpdatesAddUpWithStochasticRoundingAndAreLostToTheNearest) {
  for (RowCodec codec : {RowCodec::kFp16, RowCodec::kBf16, RowCodec::kInt16, RowCodec::kInt8}) {
    const RowFormat format = OnePart(codec, 2);
    const std::vector<float> start = {1, 0.5f};
    const auto update = static_cast<float>(0.02 * StepAt(codec, 0.5, 1));
    double sum = 0;
    constexpr int kRows = 100, kSteps = 500;
    for (uint64_t key = 0; key < kRows; ++key) {
      std::vector<float> row = start;
      for (uint64_t step = 1; step <= kSteps; ++step) {
        const uint64_t word = RandomBits(9, key, step);
        row[1] += update;
        row = Rounded(format, row, &word);
      }
      sum += (row[1] - start[1]) / update;
    }
    // Ten steps on; the walk of one row deviates by about 0.14 sqrt(500) = 3.1 steps.
    EXPECT_NEAR(sum / kRows / kSteps, 1, 0.15) << CodecName(codec);
    std::vector<float> row = Rounded(format, start, nullptr);
    const float before = row[1];
    for (int step = 0; step < kSteps; ++step) {
      row[1] += update;
      row = Rounded(format, row, nullptr);
    }
    EXPECT_EQ(row[1], before) << CodecName(codec);
  }
}

TEST(Codec, RandomBitsAreThoseOfTheWordAndDifferBetweenNumbersAndParts) {
  RowFormat format = OnePart(RowCodec::kInt8, 9);
  format.Add(RowCodec::kInt8, 9, 0, false);
  std::vector<float> numbers(18, 0.5f);  // between two codes
  numbers[0] = numbers[9] = 127;
  std::set<std::vector<std::byte>> seen;
  std::vector<int> both(18), ups(18);
  constexpr int kDraws = 4000;
  for (uint64_t step = 0; step < kDraws; ++step) {
    const uint64_t word = RandomBits(1, 2, step);
    Packed row = Pack(format, numbers, &word);
    ASSERT_EQ(Pack(format, numbers, &word).bytes, row.bytes);
    seen.insert(row.bytes);
    const std::vector<float> got = row.Numbers(format);
    for (int i = 1; i < 18; ++i) {
      ups[i] += got[i] == 1;
      both[i] += got[i] == 1 && got[i < 9 ? i + 9 : i == 10 ? 1 : i - 1] == 1;
    }
  }
  EXPECT_GT(seen.size(), kDraws * 9 / 10);
  for (int i = 1; i < 18; ++i) {
    if (i == 9) continue;
    EXPECT_NEAR(ups[i], kDraws / 2, 5 * std::sqrt(kDraws / 4)) << i;
    EXPECT_NEAR(both[i], kDraws / 4, 5 * std::sqrt(kDraws * 3 / 16)) << i;
  }
}

TEST(Codec, HalvesRoundToTheEvenCode) {
  const RowFormat fp16 = OnePart(RowCodec::kFp16, 4);
  EXPECT_EQ(Rounded(fp16, {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 0x1p-25f, 3 * 0x1p-25f}, nullptr),
            (std::vector<float>{1, 1 + 0x1p-9f, 0, 0x1p-23f}));
  const RowFormat bf16 = OnePart(RowCodec::kBf16, 2);
  EXPECT_EQ(Rounded(bf16, {-1 - 0x1p-8f, -1 - 3 * 0x1p-8f}, nullptr),
            (std::vector<float>{-1, -1 - 0x1p-6f}));
}

TEST(Codec, WhatIsBeyondTheLargestNumberIsCountedAndBecomesIt) {
  const uint64_t word = RandomBits(4, 4);
  for (const uint64_t* words : {static_cast<const uint64_t*>(nullptr), &word}) {
    const RowFormat fp16 = OnePart(RowCodec::kFp16, 5);
    Packed row = Pack(fp16, {65504, 1e6f, -1e30f, kInf, -65504}, words);
    EXPECT_EQ(row.Numbers(fp16), (std::vector<float>{65504, 65504, -65504, 65504, -65504}));
    EXPECT_EQ(row.saturated, 3);

    const RowFormat bf16 = OnePart(RowCodec::kBf16, 3);
    const float top = 0x1.fep127f;
    row = Pack(bf16, {top, kInf, -kInf}, words);
    EXPECT_EQ(row.Numbers(bf16), (std::vector<float>{top, top, -top}));
    EXPECT_EQ(row.saturated, 2);

    for (RowCodec codec : {RowCodec::kInt8, RowCodec::kInt16}) {
      const RowFormat format = OnePart(codec, 4, 1);
      row = Pack(format, {kInf, 127, -kInf, 0, kInf}, words);
      EXPECT_EQ(row.Numbers(format), (std::vector<float>{127, 127, -127, 0, kInf}));
      EXPECT_EQ(row.saturated, 2);
    }
  }
  EXPECT_EQ(
      Pack(OnePart(RowCodec::kBf16, 1), {std::numeric_limits<float>::max()}, nullptr).saturated, 1);
}

TEST(Codec, TheLargestFloatsAndTheSmallestStayFinite) {
  const float max = std::numeric_limits<float>::max();
  const float min = std::numeric_limits<float>::denorm_min();
  const uint64_t word = RandomBits(4, 4);
  for (RowCodec codec : {RowCodec::kInt8, RowCodec::kInt16}) {
    const RowFormat format = OnePart(codec, 3);
    const std::vector<float> large = Rounded(format, {max, -max, 0}, &word);
    EXPECT_NEAR(large[0] / max, 1, 1e-6);
    EXPECT_NEAR(large[1] / max, -1, 1e-6);
    EXPECT_EQ(large[2], 0);
    for (float x : Rounded(format, {min, -min, 100 * min}, &word)) EXPECT_LE(std::abs(x), 0x1p-126);
    EXPECT_EQ(Rounded(format, {0, 0, -0.0f}, &word), (std::vector<float>{0, 0, 0}));
  }
}

// A quotient by the rounded scale may be a little beyond the last code.
TEST(Codec, TheLargestNumberOfARowKeepsItsSize) {
  for (RowCodec codec : {RowCodec::kInt8, RowCodec::kInt16}) {
    const RowFormat format = OnePart(codec, 1);
    for (uint64_t i = 0; i < 50'000; ++i) {
      const uint64_t word = RandomBits(3, i);
      const float x = (2 * UnitFloat(RandomBits(4, i)) - 1) * 100;
      ASSERT_LE(std::abs(Rounded(format, {x}, &word)[0] - x), std::abs(x) * 0x1p-14f) << x;
      ASSERT_LE(std::abs(Rounded(format, {x}, nullptr)[0] - x), std::abs(x) * 0x1p-22f) << x;
    }
  }
}

TEST(Codec, NanStaysNanAndLeavesTheOthersAlone) {
  const uint64_t word = RandomBits(4, 4);
  for (const uint64_t* words : {static_cast<const uint64_t*>(nullptr), &word})
    for (RowCodec codec : kAllCodecs)
      for (int at = 0; at < 13; ++at) {
        const RowFormat format = OnePart(codec, 13);
        std::vector<float> numbers(13, 1.0f);
        numbers[at] = at % 2 == 0 ? kNan : -kNan;
        Packed row = Pack(format, numbers, words);
        const std::vector<float> got = row.Numbers(format);
        for (int i = 0; i < 13; ++i) {
          ASSERT_EQ(std::isnan(got[i]), i == at) << CodecName(codec) << " number " << i;
          ASSERT_TRUE(i == at || got[i] == 1) << CodecName(codec) << " number " << i;
        }
        ASSERT_EQ(row.saturated, 0);
      }
}

TEST(Codec, APositiveSumOfSquaresNeverBecomesZero) {
  for (RowCodec codec : kAllCodecs) {
    const RowFormat kept = OnePart(codec, 10, 0, true);
    const RowFormat other = OnePart(codec, 10, 0, false);
    std::vector<float> numbers(10, 1e-9f);
    numbers[3] = 3;
    numbers[4] = 0;
    bool lost = false;
    for (uint64_t step = 0; step < 50; ++step) {
      const uint64_t word = RandomBits(1, 2, step);
      for (const uint64_t* words : {static_cast<const uint64_t*>(nullptr), &word}) {
        const std::vector<float> got = Rounded(kept, numbers, words);
        for (int i = 0; i < 10; ++i) ASSERT_EQ(got[i] > 0, i != 4) << CodecName(codec);
        for (float x : Rounded(other, numbers, words)) lost |= x == 0;
      }
    }
    EXPECT_TRUE(lost || codec == RowCodec::kFp32) << CodecName(codec);
  }
}

}  // namespace
}  // namespace terrace
