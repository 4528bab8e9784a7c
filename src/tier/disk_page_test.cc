#include "tier/disk_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

struct TestPage {
  PageLayout layout;
  std::vector<uint64_t> mixes;  // in order; each third one is a tombstone
  Bytes rows, bytes;

  TestPage(const PageLayout& l, size_t entries) : layout(l), bytes(l.page_bytes, std::byte{0x5a}) {
    for (size_t i = 0; i < entries; ++i) mixes.push_back(1000 * (i + 1));
    for (size_t i = 0; i < entries * l.row_bytes; ++i)
      rows.push_back(static_cast<std::byte>(Mix64(i)));
    std::vector<PageEntry> all;
    for (size_t i = 0; i < entries; ++i) all.push_back({mixes[i], is_row(i) ? Row(i) : nullptr});
    WritePage(all, layout, kNumber, kPage, bytes.data());
  }
  static bool is_row(size_t i) { return i % 3 != 2; }
  const std::byte* Row(size_t i) const { return &rows[i * layout.row_bytes]; }
  std::string Problem() const { return PageProblem(bytes.data(), layout, kNumber, kPage); }

  static constexpr uint64_t kNumber = 12, kPage = 345;
};

TEST(PageLayout, PagesOfAnyRowsAreWellFilled) {
  for (size_t row = 16; row <= 2048; ++row) {
    const PageLayout layout(row, 0, 4);
    ASSERT_GE(layout.page_bytes, 4096u);
    ASSERT_LE(layout.page_bytes, 32768u);
    const size_t end = layout.rows_offset + layout.rows_per_page * row;
    ASSERT_EQ(layout.rows_offset, PageLayout::kHeaderBytes + 8 * layout.rows_per_page);
    ASSERT_LE(end, layout.page_bytes);
    ASSERT_LT(layout.page_bytes - end, std::max(layout.page_bytes / 8 + 1, row + 8)) << row;
    ASSERT_GE(8 * end, 7 * layout.page_bytes) << row;
  }
}

TEST(PageLayout, PartitionsAreTheTopBits) {
  const PageLayout one(64, 0, 1), many(64, 0, 4096);
  EXPECT_EQ(one.PartitionOf(~0ULL), 0);
  EXPECT_EQ(one.WithinPartition(5), 5u);
  EXPECT_EQ(many.PartitionOf(~0ULL), 4095);
  EXPECT_EQ(many.PartitionOf(uint64_t{3} << 52 | 1), 3);
  EXPECT_EQ(many.WithinPartition(uint64_t{3} << 52 | 1), uint64_t{1} << 12);
  EXPECT_EQ(many.partitions(), 4096);
  EXPECT_EQ(one.PagesFor(0), 0);
  EXPECT_EQ(one.PagesFor(1), 1);
  EXPECT_EQ(one.PagesFor(static_cast<int64_t>(one.rows_per_page) + 1), 2);
}

TEST(DiskPage, GivesBackWhatWasWritten) {
  for (const size_t row_bytes : {16, 17, 64, 100, 2048})
    for (const size_t share : {0, 1, 2, 4}) {  // quarters of a page
      const PageLayout layout(row_bytes, 0, 1);
      const TestPage page(layout, layout.rows_per_page * share / 4);
      ASSERT_EQ(page.Problem(), "");
      const PageView view(page.bytes.data(), layout);
      ASSERT_EQ(view.entries(), page.mixes.size());
      size_t row = 0, tombstone = view.rows();
      for (size_t i = 0; i < page.mixes.size(); ++i) {
        const size_t entry = page.is_row(i) ? row++ : tombstone++;
        ASSERT_EQ(view.mix(entry), page.mixes[i]);
        ASSERT_EQ(view.is_tombstone(entry), !page.is_row(i));
        if (page.is_row(i)) {
          ASSERT_EQ(std::memcmp(view.row(entry), page.Row(i), row_bytes), 0) << row_bytes;
        }
      }
      ASSERT_EQ(row, view.rows());
    }
}

TEST(DiskPage, FindsRowsAndNothingElse) {
  const PageLayout layout(24, 0, 1);
  for (const size_t entries : {size_t{0}, size_t{1}, size_t{2}, size_t{77}, layout.rows_per_page}) {
    const TestPage page(layout, entries);
    const PageView view(page.bytes.data(), layout);
    for (size_t i = 0; i < entries; ++i) {
      const std::byte* row = view.Find(page.mixes[i]);
      ASSERT_EQ(row != nullptr, page.is_row(i)) << i;
      if (row != nullptr) {
        ASSERT_EQ(std::memcmp(row, page.Row(i), 24), 0);
      }
      ASSERT_EQ(view.Find(page.mixes[i] + 1), nullptr);
    }
    EXPECT_EQ(view.Find(0), nullptr);
    EXPECT_EQ(view.Find(~0ULL), nullptr);
  }
}

TEST(DiskPage, EachFlippedByteIsADamage) {
  TestPage page(PageLayout(20, 512, 1), 11);
  ASSERT_EQ(page.Problem(), "");
  for (std::byte& b : page.bytes) {
    const std::byte before = std::exchange(b, b ^ std::byte{0x10});
    EXPECT_THAT(page.Problem(), HasSubstr("checksum")) << &b - page.bytes.data();
    b = before;
  }
  EXPECT_EQ(page.Problem(), "");
}

TEST(DiskPage, APageAtAnotherPlaceIsADamage) {
  const TestPage page(PageLayout(20, 512, 1), 11);
  const auto at = [&](uint64_t number, uint64_t place) {
    return PageProblem(page.bytes.data(), page.layout, number, place);
  };
  EXPECT_EQ(at(12, 345), "");
  EXPECT_NE(at(12, 346), "");
  EXPECT_NE(at(13, 345), "");
  EXPECT_NE(at(13, 344), "");
}

TEST(DiskPage, CountsThatDoNotFitAreADamage) {
  const TestPage page(PageLayout(20, 512, 1), 11);
  PageLayout larger_rows(40, 512, 1);  // the checksum does not depend on it, what fits does
  EXPECT_EQ(PageProblem(page.bytes.data(), larger_rows, 12, 345),
            "it counts 11 entries, but holds at most 10");
}

TEST(DiskPage, DamageIsAnErrorWithFileAndPage) {
  TestPage page(PageLayout(20, 512, 1), 11);
  CheckPage(page.bytes.data(), page.layout, 12, 345, "dir/12.base");
  page.bytes[100] ^= std::byte{1};
  try {
    CheckPage(page.bytes.data(), page.layout, 12, 345, "dir/12.base");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorruption);
    EXPECT_THAT(e.what(), HasSubstr("dir/12.base: page 345 is damaged: its checksum is "));
  }
}

}  // namespace
}  // namespace terrace
