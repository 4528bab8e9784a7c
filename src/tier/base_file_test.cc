#include "tier/base_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "base/test_dir.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kNumber = 5;
constexpr size_t kRowBytes = 20;

uint64_t MixAt(int64_t i) { return static_cast<uint64_t>(i) * 1000 + 77; }

class BaseFileTest : public ::testing::Test {
 protected:
  std::shared_ptr<BaseFile> Write(int64_t rows, double filter_bits, int64_t max_rows) {
    BaseWriter writer(PosixEnv(), path_, false, layout_, kNumber, max_rows, filter_bits);
    std::vector<std::byte> row(kRowBytes);
    for (int64_t i = 0; i < rows; ++i) {
      row[0] = static_cast<std::byte>(i);
      writer.Add(MixAt(i), row.data());
    }
    return writer.Finish();
  }
  std::shared_ptr<BaseFile> Open(const BaseHeader& header, bool with_filter = true) {
    return BaseFile::Open(PosixEnv(), path_, false, layout_, header, with_filter);
  }
  std::string Failure(const BaseHeader& header) {
    try {
      Open(header);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorruption);
      EXPECT_THAT(e.what(), HasSubstr(path_));
      return e.what();
    }
    return "";
  }

  const TestDir dir_;
  const std::string path_ = dir_.path() + "/00000005.base";
  const PageLayout layout_{kRowBytes, 512, 1};  // 17 rows a page
};

TEST_F(BaseFileTest, OpensAsItWasWritten) {
  for (const int64_t rows : {1, 17, 18, 5000})
    for (const double bits : {0.0, 10.0}) {
      const auto written = Write(rows, bits, rows + 100);
      Array<uint64_t> fences;
      const auto opened = BaseFile::Open(PosixEnv(), path_, false, layout_,
                                         {kNumber, layout_.PagesFor(rows), rows, 0}, true, &fences);
      ASSERT_EQ(fences.size(), static_cast<size_t>(opened->pages()));
      for (size_t p = 0; p < fences.size(); ++p)
        ASSERT_EQ(fences[p], MixAt(17 * static_cast<int64_t>(p)));
      for (const auto& base : {written, opened}) {
        ASSERT_EQ(base->rows(), rows);
        ASSERT_EQ(base->pages(), layout_.PagesFor(rows));
        ASSERT_EQ(base->first_mix(), MixAt(0));
        ASSERT_EQ(base->file_bytes(), static_cast<int64_t>(base->file()->Size()));
        ASSERT_EQ(base->filter().bytes() > 0, bits > 0);
        for (int64_t i = 0; i < rows; ++i) ASSERT_TRUE(base->filter().MayContain(MixAt(i)));
      }
      ASSERT_TRUE(std::ranges::equal(written->filter().words(), opened->filter().words()));
      ASSERT_EQ(Open({kNumber, opened->pages(), rows, 0}, false)->filter().bytes(), 0u);
    }
}

// Hints are mostly before the page; behind it where a batch is in order by its top bits only.
TEST_F(BaseFileTest, FindsThePageOfEachMixFromAnyHint) {
  const auto base = Write(17 * 40, 0, 17 * 40);
  EXPECT_EQ(base->fence_bytes(), 8 * 40);  // mixes so near need them whole
  for (int64_t i = 0; i < base->rows(); ++i)
    for (int64_t hint = 0; hint < base->pages(); ++hint)
      for (const uint64_t beyond : {0, 1, 999}) {
        const BaseFile::Pages pages = base->PagesOf(MixAt(i) + beyond, hint);
        ASSERT_EQ(pages.first, i / 17) << hint;
        ASSERT_EQ(pages.last, i / 17) << hint;
      }
  EXPECT_EQ(base->PagesOf(0, 0).last, 0);
  EXPECT_EQ(base->PagesOf(~0ULL, 0).first, 39);
}

TEST_F(BaseFileTest, HalfAFenceIsEnoughButForMixesThatShareIt) {
  const PageLayout layout(kRowBytes, 512, 4);
  const auto mix_at = [](int64_t i) {
    return uint64_t{3} << 62 | static_cast<uint64_t>(i + 1) << 40 | 12345;
  };
  BaseWriter writer(PosixEnv(), path_, false, layout, kNumber, 17 * 40, 0);
  const std::vector<std::byte> row(kRowBytes);
  for (int64_t i = 0; i < 17 * 40; ++i) writer.Add(mix_at(i), row.data());
  const auto base = writer.Finish();
  EXPECT_EQ(base->fence_bytes(), 4 * 40);
  for (int64_t i = 0; i < base->rows(); ++i)
    for (int64_t hint = 0; hint < base->pages(); ++hint)
      for (const int64_t beyond : {-12345, -1, 0, 1, 1 << 30}) {
        const BaseFile::Pages pages =
            base->PagesOf(mix_at(i) + static_cast<uint64_t>(beyond), hint);
        const bool shared = i > 0 && i % 17 == 0 && beyond < 1 << 30;
        const int64_t page = beyond < 0 && i > 0 ? (i - 1) / 17 : i / 17;
        ASSERT_LE(pages.first, page);
        ASSERT_GE(pages.last, page);
        ASSERT_EQ(pages.last - pages.first, shared) << i << " " << beyond;
      }
}

TEST_F(BaseFileTest, WithoutRowsThereIsNoFile) {
  EXPECT_EQ(Write(0, 10, 50), nullptr);
  EXPECT_FALSE(PosixEnv().Exists(path_));
}

TEST_F(BaseFileTest, WhatIsNotFinishedIsRemoved) {
  {
    BaseWriter writer(PosixEnv(), path_, false, layout_, kNumber, 10, 10);
    EXPECT_TRUE(PosixEnv().Exists(path_));
  }
  EXPECT_FALSE(PosixEnv().Exists(path_));
}

TEST_F(BaseFileTest, AnotherBaseThanTheManifestsIsADamage) {
  Write(100, 10, 100);
  EXPECT_EQ(Failure({kNumber, 6, 100, 0}), "");
  EXPECT_THAT(Failure({kNumber + 1, 6, 100, 0}), HasSubstr("its checksum is"));
  EXPECT_THAT(Failure({kNumber, 6, 101, 0}),
              HasSubstr("describes base 5 with 6 pages and 100 rows of 20 bytes, the manifest "
                        "base 5 with 6 pages and 101 rows of 20 bytes"));
  EXPECT_THAT(Failure({kNumber, 7, 100, 0}), HasSubstr("the manifest base 5 with 7 pages"));
}

TEST_F(BaseFileTest, EachFlippedByteBehindThePagesIsADamage) {
  Write(100, 10, 100);  // 6 pages; fences and filter are 48 + 128 bytes
  const std::string good = ReadWholeFile(PosixEnv(), path_);
  const auto flipped = [&](size_t at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    WriteFileAtomically(PosixEnv(), path_, bad);
    return Failure({kNumber, 6, 100, 0});
  };
  for (size_t at = 0; at < 48 + 128; ++at)
    ASSERT_THAT(flipped(6 * 512 + at), HasSubstr("fences and filter, from page 6, are damaged"));
  for (size_t at = good.size() - 512; at < good.size(); ++at)
    ASSERT_THAT(flipped(at), HasSubstr("its last page is damaged"));
  for (const size_t size : {size_t{0}, size_t{512}, good.size() - 512, good.size() - 1}) {
    WriteFileAtomically(PosixEnv(), path_, good.substr(0, size));
    ASSERT_NE(Failure({kNumber, 6, 100, 0}), "") << size;
  }
}

}  // namespace
}  // namespace terrace
