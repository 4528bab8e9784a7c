#include "tier/page_writer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_dir.h"

namespace terrace {
namespace {

class PageWriterTest : public ::testing::TestWithParam<size_t> {  // bytes of a page
 protected:
  const TestDir dir_;
  const std::string path_ = dir_.path() + "/pages";
  const PageLayout layout_{40, GetParam(), 1};
};

TEST_P(PageWriterTest, WritesFullPagesInOrder) {
  for (const int64_t entries : {1, 100, 40'000}) {  // beyond what is written at once
    PageWriter writer(PosixEnv(), path_, false, layout_, 3, entries);
    std::vector<std::byte> row(40);
    for (int64_t i = 0; i < entries; ++i) {
      std::memcpy(row.data(), &i, sizeof(i));
      writer.Add(static_cast<uint64_t>(i), i % 5 == 4 ? nullptr : row.data());
    }
    writer.Flush();
    ASSERT_EQ(writer.entries(), entries);
    ASSERT_EQ(writer.pages(), layout_.PagesFor(entries));
    ASSERT_EQ(writer.fences().size(), static_cast<size_t>(writer.pages()));
    const auto file = writer.Keep();
    ASSERT_EQ(file->Size(), static_cast<uint64_t>(writer.pages()) * layout_.page_bytes);

    int64_t next = 0;
    AlignedBuffer buffer(layout_.page_bytes);
    for (uint64_t page = 0; page < writer.fences().size(); ++page) {
      file->Read(page * layout_.page_bytes, buffer.data(), layout_.page_bytes);
      CheckPage(buffer.data(), layout_, 3, page, path_);
      const PageView view(buffer.data(), layout_);
      ASSERT_EQ(writer.fences()[page], static_cast<uint64_t>(next));
      if (page + 1 < writer.fences().size()) {
        ASSERT_EQ(view.entries(), layout_.rows_per_page);
      }
      size_t tombstone = view.rows(), entry = 0;
      for (size_t i = 0; i < view.entries(); ++i, ++next) {
        const size_t at = next % 5 == 4 ? tombstone++ : entry++;
        ASSERT_EQ(view.mix(at), static_cast<uint64_t>(next));
        ASSERT_EQ(view.is_tombstone(at), next % 5 == 4);
        if (next % 5 != 4) {
          ASSERT_EQ(std::memcmp(view.row(at), &next, sizeof(next)), 0);
        }
      }
    }
    ASSERT_EQ(next, entries);
  }
  EXPECT_TRUE(PosixEnv().Exists(path_));
}

TEST_P(PageWriterTest, AFileThatIsNotKeptIsRemoved) {
  {
    PageWriter writer(PosixEnv(), path_, false, layout_, 3, 1);
    writer.Add(1, nullptr);
    writer.Flush();
    EXPECT_TRUE(PosixEnv().Exists(path_));
  }
  EXPECT_FALSE(PosixEnv().Exists(path_));
}

TEST_P(PageWriterTest, MoreRowsThanAFileTakesAreRefusedBeforeItIsMade) {
  const int64_t entries = (int64_t{1} << 32) * static_cast<int64_t>(layout_.rows_per_page);
  EXPECT_THROW(PageWriter(PosixEnv(), path_, false, layout_, 3, entries), Error);
  EXPECT_FALSE(PosixEnv().Exists(path_));
}

TEST_P(PageWriterTest, AppendsBehindThePages) {
  PageWriter writer(PosixEnv(), path_, false, layout_, 3, 1);
  writer.Add(1, nullptr);
  writer.Flush();
  const std::vector<std::byte> tail(2 * layout_.page_bytes, std::byte{9});
  writer.Append(tail.data(), tail.size());
  writer.Append(tail.data(), layout_.page_bytes);
  const auto file = writer.Keep();
  ASSERT_EQ(file->Size(), 4 * layout_.page_bytes);
  std::vector<std::byte> last(layout_.page_bytes);
  file->Read(3 * layout_.page_bytes, last.data(), last.size());
  EXPECT_TRUE(std::equal(last.begin(), last.end(), tail.begin()));
}

INSTANTIATE_TEST_SUITE_P(Each, PageWriterTest, ::testing::Values(512, 4096, 1 << 20),
                         [](const auto& test) { return std::to_string(test.param); });

}  // namespace
}  // namespace terrace
