#include "tier/key_filter.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace terrace {
namespace {

// Mixes as in a base: of one partition of 64, so that the top bits are the same.
uint64_t Mix(uint64_t i) { return uint64_t{37} << 58 | Mix64(i) >> 6; }

KeyFilter FilterOf(size_t keys, double bits) {
  KeyFilter filter(keys, bits);
  for (size_t i = 0; i < keys; ++i) filter.Add(Mix(i));
  return filter;
}

TEST(KeyFilter, NeverDeniesAKeyThatIsThere) {
  for (const size_t keys : {1, 2, 25, 1000, 50'000})
    for (const double bits : {0.1, 1.0, 5.0, 10.0, 20.0}) {
      const KeyFilter filter = FilterOf(keys, bits);
      for (size_t i = 0; i < keys; ++i) ASSERT_TRUE(filter.MayContain(Mix(i))) << keys << " " << i;
    }
}

struct Rate {
  double bits, percent;
};

class KeyFilterRate : public ::testing::TestWithParam<Rate> {};

TEST_P(KeyFilterRate, FewAbsentKeysPass) {
  constexpr size_t kKeys = 200'000, kAbsent = 400'000;
  const KeyFilter filter = FilterOf(kKeys, GetParam().bits);
  EXPECT_NEAR(8.0 * static_cast<double>(filter.bytes()) / kKeys, GetParam().bits, 0.01);
  int passed = 0;
  for (size_t i = kKeys; i < kKeys + kAbsent; ++i) passed += filter.MayContain(Mix(i));
  const double percent = 100.0 * passed / kAbsent;
  EXPECT_GT(percent, 0.8 * GetParam().percent);
  EXPECT_LT(percent, 1.2 * GetParam().percent);
}

INSTANTIATE_TEST_SUITE_P(Each, KeyFilterRate,
                         ::testing::Values(Rate{8, 3.3}, Rate{10, 1.3}, Rate{12, 0.5}),
                         [](const auto& test) {
                           return std::to_string(static_cast<int>(test.param.bits)) + "Bits";
                         });

TEST(KeyFilter, WithoutBitsOrKeysEveryKeyMayBeThere) {
  for (KeyFilter filter : {KeyFilter(), KeyFilter(0, 10), KeyFilter(100, 0)}) {
    EXPECT_EQ(filter.bytes(), 0u);
    filter.Add(5);
    EXPECT_TRUE(filter.MayContain(5));
    EXPECT_TRUE(filter.MayContain(6));
  }
}

TEST(KeyFilter, IsTheSameFromItsWords) {
  const KeyFilter filter = FilterOf(3000, 10);
  EXPECT_EQ(filter.words().size() % 8, 0u);
  const KeyFilter copy(Array<uint32_t>(filter.words().begin(), filter.words().end()));
  for (size_t i = 0; i < 30'000; ++i)
    ASSERT_EQ(copy.MayContain(Mix(i)), filter.MayContain(Mix(i))) << i;
}

}  // namespace
}  // namespace terrace
