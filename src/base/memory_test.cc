#include "base/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kSizes[] = {0, 1, 63, 64, 65, 100'000, (4 << 20) - 1, 4 << 20, (6 << 20) + 5};

TEST(AllocateArray, GivesAlignedZeroedMemoryOfEverySize) {
  for (const size_t bytes : kSizes) {
    auto* const data = static_cast<uint8_t*>(AllocateArray(bytes, true));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u) << bytes;
    EXPECT_EQ(std::count(data, data + bytes, 0), static_cast<int64_t>(bytes));
    std::fill_n(data, bytes, uint8_t{7});
    FreeArray(data, bytes);
  }
}

TEST(AllocateArray, ExplainsThatMemoryRanOut) {
  for (const size_t bytes : {size_t{1} << 62, SIZE_MAX}) {
    try {
      AllocateArray(bytes, false);
      FAIL() << bytes;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("out of memory"), std::string::npos);
    }
  }
}

TEST(MappedBytes, StartsOnAHugePageAndKeepsItsBytes) {
  constexpr size_t kHugePage = 2 << 20;
  MappedBytes bytes;
  bytes.Resize(kHugePage);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % kHugePage, 0u);
  std::fill_n(bytes.data(), kHugePage, std::byte{7});
  for (const size_t size : {3 * kHugePage, size_t{5000}}) {
    bytes.Resize(size);
    const size_t kept = std::min(size, kHugePage);
    EXPECT_EQ(std::count(bytes.data(), bytes.data() + kept, std::byte{7}),
              static_cast<int64_t>(kept));
  }
}

TEST(Array, KeepsItsValuesWhenItGrowsFromSmallToLarge) {
  Array<uint32_t> array;
  for (const size_t size : {10u, 1000u, 2'000'000u, 3'000'000u}) {
    const size_t before = array.size();
    array.resize(size);
    std::iota(array.begin() + static_cast<int64_t>(before), array.end(),
              static_cast<uint32_t>(before));
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(array[i], i);
  }
  array.assign(5, 0);
  EXPECT_EQ(array, (Array<uint32_t>{0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace terrace
