#include "tier/disk_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tier/disk_buffer.h"

namespace terrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

DiskOptions Options(size_t memory) {
  DiskOptions options;
  options.memory_bytes = memory;
  return options;
}

template <typename F>
std::string Failure(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "";
}

struct Rows {
  int64_t rows, fence_bytes, filter_bytes;

  Rows(const DiskBudget& budget, const PageLayout& layout, int64_t n)
      : rows(n),
        fence_bytes(8 * layout.PagesFor(n)),
        filter_bytes(static_cast<int64_t>(budget.FilterBits(n) / 8 * static_cast<double>(n))) {}
};

TEST(DiskBudget, ThePartsAreWithinTheWhole) {
  int fitted = 0;
  for (const size_t row_bytes : {16, 64, 100, 513, 2048})
    for (const int partitions : {1, 2, 64, 1024, 4096})
      for (size_t memory = 4 << 20; memory <= size_t{64} << 30; memory = memory * 3 / 2) {
        const PageLayout layout(row_bytes, 0, partitions);
        std::optional<DiskBudget> budget;
        if (!Failure([&] { budget.emplace(Options(memory), layout); }).empty()) continue;
        ++fitted;
        const size_t readers = static_cast<size_t>(budget->readers) * budget->reader.memory_bytes();
        const size_t put_buffers =
            static_cast<size_t>(partitions) * budget->buffer_rows * (row_bytes + 8);
        ASSERT_LE(readers + put_buffers + budget->merge_bytes + 3 * budget->io_bytes,
                  budget->buffers);
        ASSERT_LT(budget->buffers, memory);
        ASSERT_GE(budget->reader.max_read, layout.page_bytes);
        ASSERT_EQ(budget->buffer_rows % layout.rows_per_page, 0u);
        ASSERT_GT(budget->buffer_rows, 0u);
        for (const int64_t n : {0, 1000, 1'000'000, 100'000'000}) {
          const Rows r(*budget, layout, n);
          const int64_t index = budget->IndexLimit(r.fence_bytes, r.filter_bytes, partitions);
          ASSERT_LE(static_cast<int64_t>(budget->buffers) + r.fence_bytes + r.filter_bytes + index,
                    static_cast<int64_t>(memory));
          // A filter never takes more than a seventh of what the buffers leave.
          ASSERT_LE(7 * r.filter_bytes, static_cast<int64_t>(memory - budget->buffers));
        }
      }
  EXPECT_GT(fitted, 300);
}

TEST(DiskBudget, AFilterIsWholeOrNotAtAll) {
  const DiskBudget budget(Options(256 << 20), PageLayout(64, 0, 64));
  EXPECT_EQ(budget.FilterBits(0), 10);
  EXPECT_EQ(budget.FilterBits(1'000'000), 10);
  double last = 10;
  for (int64_t rows = 1; rows < 1'000'000'000'000; rows *= 2) {
    const double bits = budget.FilterBits(rows);
    EXPECT_LE(bits, last);
    EXPECT_TRUE(bits == 0 || bits >= 5) << bits;
    last = bits;
  }
  EXPECT_EQ(last, 0);
}

TEST(DiskBudget, LargeReadsAndWritesGetHugePagesWhereTheyAreASmallShare) {
  const PageLayout layout(64, 0, 8);
  EXPECT_EQ(DiskBudget(Options(8 << 20), layout).io_bytes, kSmallIo);
  EXPECT_EQ(DiskBudget(Options(127 << 20), layout).io_bytes, kSmallIo);
  EXPECT_EQ(DiskBudget(Options(128 << 20), layout).io_bytes, kHugeIo);
}

TEST(DiskBudget, TheIndexMayBeSetByHand) {
  DiskOptions options = Options(64 << 20);
  options.index_bytes = 12345;
  EXPECT_EQ(DiskBudget(options, PageLayout(64, 0, 4)).IndexLimit(1 << 20, 1 << 20, 4), 12345);
}

TEST(DiskBudget, SaysHowMuchTheBuffersNeed) {
  const PageLayout layout(64, 0, 4096);
  const std::string failure = Failure([&] { DiskBudget(Options(8 << 20), layout); });
  EXPECT_THAT(failure, HasSubstr("4096 partitions and 4096-byte pages needs at least 2"));
  EXPECT_THAT(failure, HasSubstr("MiB of memory, its budget is 8.00 MiB: raise the budget"));
  EXPECT_NE(Failure([&] { DiskBudget(Options(0), layout); }), "");
}

TEST(DiskBudget, SaysHowMuchTheRowsNeed) {
  const PageLayout layout(64, 0, 64);
  const DiskBudget budget(Options(64 << 20), layout);
  const auto check = [&](const DiskBudget& b, int64_t n) {
    return Failure([&] {
      const Rows r(b, layout, n);
      b.CheckRows("dir", n, r.fence_bytes, r.filter_bytes, layout);
    });
  };
  EXPECT_EQ(check(budget, 10'000'000), "");
  const std::string failure = check(budget, 1'000'000'000);
  EXPECT_THAT(failure, HasSubstr("dir: a memory budget of 64.0 MiB is too small for 1000000000 "
                                 "rows of 64 bytes: buffers take "));
  EXPECT_THAT(failure, ContainsRegex("raise the budget to [0-9.]+ MiB, or to [0-9.]+ GiB"));
}

TEST(DiskBudget, SaysHowMuchTheIndexNeeds) {
  const DiskBudget budget(Options(64 << 20), PageLayout(64, 0, 64));
  EXPECT_THAT(Failure([&] { budget.FailIndex("dir", 48 << 20, 16 << 20); }),
              HasSubstr("dir: the index of the logs takes 48.0 MiB, a memory budget of 64.0 MiB "
                        "leaves 16.0 MiB for it: raise the budget to 96.0 MiB"));
}

}  // namespace
}  // namespace terrace
