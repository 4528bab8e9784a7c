#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

#include "base/hash_kernels.h"
#include "base/random.h"

namespace terrace {
namespace {

// Keys live in files: these values are part of the format.
TEST(Hash, HasTheValuesThatFilesRelyOn) {
  EXPECT_EQ(HashBytes("", 0), 0x2d06800538d394c2ULL);  // XXH3_64bits of nothing
  EXPECT_EQ(Mix64(1), 0x5692161d100b05e5ULL);
  EXPECT_EQ(Mix64(0), 0u);
}

TEST(Hash, DependsOnSeedAndEveryByte) {
  EXPECT_NE(HashBytes("abc", 1), HashBytes("abc", 2));
  EXPECT_NE(HashBytes("abc", 1), HashBytes("abd", 1));
  EXPECT_NE(HashBytes(std::string_view("a\0b", 3), 1), HashBytes(std::string_view("a\0c", 3), 1));
}

TEST(Hash, LongInputsHashAlikeAtEveryInstructionSetLevel) {
  std::string bytes(70'000, 0);
  RandomStream stream(3, 4);
  for (char& byte : bytes) byte = static_cast<char>(stream.Next());
  for (const size_t size : {511, 512, 1024, 1025, 4088, 65'528, 70'000}) {
    const uint64_t hash = HashBytes(bytes.data(), size, 5);
    EXPECT_EQ(isa_baseline::kHashKernels.xxh3_64(bytes.data(), size, 5), hash) << size;
#if defined(TERRACE_HAVE_X86_ISA)
    if (CurrentIsa() >= IsaLevel::kAvx2) {
      EXPECT_EQ(isa_avx2::kHashKernels.xxh3_64(bytes.data(), size, 5), hash) << size;
    }
#endif
  }
}

TEST(Hash, PiecesGiveTheHashOfTheWhole) {
  const std::string bytes(100'000, 'x');
  for (const size_t piece : {size_t{1}, size_t{255}, size_t{4096}, bytes.size()}) {
    Hasher128 hasher(7);
    for (size_t at = 0; at < bytes.size(); at += piece)
      hasher.Add(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(hasher.Result(), HashBytes128(bytes.data(), bytes.size(), 7));
  }
  EXPECT_EQ(Hasher128(0).Result(), HashBytes128("", 0, 0));
}

TEST(Hash, UnmixUndoesMix) {
  for (const uint64_t x : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_EQ(Unmix64(Mix64(x)), x);
    EXPECT_EQ(Mix64(Unmix64(x)), x);
  }
  for (int bit = 0; bit < 64; ++bit) EXPECT_EQ(Unmix64(Mix64(uint64_t{1} << bit)), 1ULL << bit);
  RandomStream stream(7, 8);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t x = stream.Next();
    ASSERT_EQ(Unmix64(Mix64(x)), x);
    ASSERT_EQ(Mix64(Unmix64(x)), x);
  }
}

TEST(Random, IsAPureFunctionWithDistinctStreams) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {0, 1, 2})
    for (uint64_t a = 0; a < 100; ++a)
      for (uint64_t b = 0; b < 10; ++b) seen.insert(RandomBits(seed, a, b));
  EXPECT_EQ(seen.size(), 3000u);
  EXPECT_EQ(RandomBits(5, 6, 7), RandomBits(5, 6, 7));
}

TEST(Random, UnitFloatsAreUniform) {
  RandomStream stream(1, 2);
  double sum = 0;
  double squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const float u = UnitFloat(stream.Next());
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.005);
}

TEST(Random, BelowNCoversTheRange) {
  RandomStream stream(3, 4);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[BelowN(stream.Next(), 7)];
  for (int c : counts) EXPECT_NEAR(c, 10000, 500);
}

}  // namespace
}  // namespace terrace
