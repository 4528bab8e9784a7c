#include "tier/row_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace terrace {
namespace {

TEST(RowArena, IsZeroAndStaysInPlaceWhileItGrows) {
  RowArena arena("test", int64_t{1} << 30);
  std::byte* const data = arena.data();
  int64_t used = 0;
  for (int64_t bytes :
       {1, 100, 70'000, 300'000, (2 << 20) - 5, 2 << 20, (2 << 20) + 1, 9 << 20, (70 << 20) + 5}) {
    arena.Grow(bytes);
    ASSERT_GE(arena.size(), bytes);
    ASSERT_EQ(arena.data(), data);
    ASSERT_TRUE(std::all_of(data, data + used, [](std::byte b) { return b == std::byte{7}; }));
    ASSERT_TRUE(std::all_of(data + used, data + arena.size(),
                            [](std::byte b) { return b == std::byte{0}; }));
    std::fill(data + used, data + arena.size(), std::byte{7});
    used = arena.size();
  }
}

TEST(RowArena, NeverShrinks) {
  RowArena arena("test", 1 << 30);
  arena.Grow(100'000);
  const int64_t size = arena.size();
  arena.Grow(10);
  EXPECT_EQ(arena.size(), size);
}

TEST(RowArena, TakesLittleMoreThanAsked) {
  RowArena arena("test", 1 << 30);
  arena.Grow(1000);
  EXPECT_LE(arena.size(), 64 << 10);
  arena.Grow((3 << 20) + 1);
  EXPECT_LE(arena.size(), (3 << 20) + (64 << 10));
  arena.Grow((400 << 20) + 1);
  EXPECT_LE(arena.size(), 402 << 20);
}

TEST(RowArena, SaysWhatItCannotHoldAndKeepsWhatItHolds) {
  RowArena arena("table 'user': rows", 3 << 20);
  EXPECT_EQ(arena.capacity(), 4 << 20);
  arena.Grow(100);
  arena.data()[99] = std::byte{5};
  const int64_t size = arena.size();
  try {
    arena.Grow((4 << 20) + 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    EXPECT_THAT(e.what(), testing::HasSubstr("table 'user': rows: 4.00 MiB are needed"));
    EXPECT_THAT(e.what(), testing::HasSubstr("at most 4.00 MiB"));
  }
  EXPECT_EQ(arena.size(), size);
  EXPECT_EQ(arena.data()[99], std::byte{5});
  arena.Grow(4 << 20);
  EXPECT_EQ(arena.size(), 4 << 20);
}

TEST(RowArena, ReservesNoMoreThanAMachineCanUse) {
  std::vector<std::unique_ptr<RowArena>> arenas;
  for (int i = 0; i < 64; ++i) {
    arenas.push_back(std::make_unique<RowArena>("test", int64_t{1} << 50));
    arenas.back()->Grow(1);
    EXPECT_LT(arenas.back()->capacity(), int64_t{1} << 50);
  }
}

}  // namespace
}  // namespace terrace
