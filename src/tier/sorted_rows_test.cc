#include "tier/sorted_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "base/test_dir.h"
#include "tier/disk_manifest.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

constexpr size_t kRowBytes = 16;
using Stream = std::vector<std::pair<uint64_t, std::optional<uint64_t>>>;  // mix, value or deleted

// Sources of partition 2 of 4, and what they amount to.
class SortedRowsTest : public ::testing::Test {
 protected:
  using Entries = std::map<uint64_t, std::optional<uint64_t>>;
  struct Row {
    uint64_t words[2];
    explicit Row(uint64_t value) : words{value, ~value} {}
    const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words); }
  };

  uint64_t Mix(uint64_t random) const { return uint64_t{2} << 62 | random >> 2; }
  // Draws from few mixes, so that sources have them in common.
  Entries Draw(int count, bool tombstones) {
    Entries entries;
    for (int i = 0; i < count; ++i) {
      std::optional<uint64_t> value = random_.Next();
      if (tombstones && random_.Next() % 4 == 0) value.reset();
      entries[Mix(Mix64(random_.Next() % 3000))] = value;
    }
    return entries;
  }
  void Overlay(const Entries& entries) {
    for (const auto& [mix, value] : entries) expected_[mix] = value;
  }
  void AddBase(int count) {
    const Entries entries = Draw(count, false);
    BaseWriter writer(PosixEnv(), dir_.path() + "/base", false, layout_, 1, count, 10);
    for (const auto& [mix, value] : entries) writer.Add(mix, Row(*value).bytes());
    sources_.base = writer.Finish();
    Overlay(entries);
  }
  void AddLog(uint64_t number, int count) {
    auto log = std::make_shared<LogFile>();
    log->number = number;
    PageWriter writer(PosixEnv(), LogPath(dir_.path(), number), false, layout_, number, count);
    const Entries entries = Draw(count, true);
    for (const auto& [mix, value] : entries) writer.Add(mix, value ? Row(*value).bytes() : nullptr);
    writer.Flush();
    log->file = writer.Keep();
    sources_.logs.push_back({log, writer.pages(), writer.entries()});
    Overlay(entries);
  }
  void AddBuffer(int count) {
    const Entries entries = Draw(count, true);
    for (const auto& [mix, value] : entries)
      sources_.buffer.Add(mix, value ? Row(*value).bytes() : nullptr);
    Overlay(entries);
  }
  Stream Read(size_t buffer_bytes) {
    int64_t pages = 0;
    SortedRows rows(sources_, layout_, buffer_bytes, [&](int64_t n) { pages += n; });
    Stream stream;
    while (rows.Next()) {
      std::optional<uint64_t> value;
      if (rows.row() != nullptr) {
        uint64_t words[2];
        std::memcpy(words, rows.row(), kRowBytes);
        EXPECT_EQ(words[1], ~words[0]);
        value = words[0];
      }
      stream.emplace_back(rows.mix(), value);
    }
    EXPECT_FALSE(rows.Next());
    pages_read_ = pages;
    return stream;
  }
  // With every size of the buffer, from all at once down to a stripe for each entry.
  void ExpectTheNewestOfAll() {
    const Stream expected(expected_.begin(), expected_.end());
    const size_t all = static_cast<size_t>(sources_.log_entries()) * 64;
    for (const size_t bytes : {2 * all, all / 2, all / 7, all / 50, size_t{64}, size_t{0}}) {
      if (bytes < 100 && all > 64 * 100) continue;  // reads the logs for each entry
      ASSERT_EQ(Read(bytes), expected) << bytes;
    }
    Read(2 * all);
    EXPECT_EQ(pages_read_, sources_.base_pages() + sources_.log_pages());
  }

  const TestDir dir_;
  const PageLayout layout_{kRowBytes, 512, 4};
  RandomStream random_{1, 2};
  RowSources sources_{.base = nullptr, .logs = {}, .buffer = LogBuffer(kRowBytes)};
  Entries expected_;
  int64_t pages_read_ = 0;
};

TEST_F(SortedRowsTest, OfNothingIsNothing) { ExpectTheNewestOfAll(); }

TEST_F(SortedRowsTest, OfABaseIsTheBase) {
  AddBase(2000);
  ExpectTheNewestOfAll();
}

TEST_F(SortedRowsTest, OfLogsIsTheNewestOfEachWithTombstones) {
  AddLog(3, 1000);
  AddLog(4, 700);
  ExpectTheNewestOfAll();
}

TEST_F(SortedRowsTest, TheNewerSourceWins) {
  AddBase(2000);
  AddLog(3, 1500);
  AddLog(4, 30);
  AddLog(5, 400);
  AddBuffer(200);
  ExpectTheNewestOfAll();
}

TEST_F(SortedRowsTest, FewEntriesWithOneStripeEach) {
  AddBase(40);
  AddLog(3, 30);
  AddBuffer(20);
  ExpectTheNewestOfAll();
}

// As where rows were put in the order of their mixes.
TEST_F(SortedRowsTest, PartsOfALogThatAStripeDoesNotNeedAreNotReadAgain) {
  AddBase(500);
  AddLog(3, 20000);
  const Stream expected(expected_.begin(), expected_.end());
  const size_t all = static_cast<size_t>(sources_.log_entries()) * 64;
  ASSERT_GT(sources_.log_pages(), 100);
  EXPECT_EQ(Read(all / 10), expected);
  EXPECT_LE(pages_read_, sources_.base_pages() + 4 * sources_.log_pages());
}

TEST_F(SortedRowsTest, TheEndsOfThePartitionAreInIt) {
  AddBase(300);
  for (const uint64_t mix : {uint64_t{2} << 62, (uint64_t{3} << 62) - 1}) {
    sources_.buffer.Add(mix, nullptr);
    expected_[mix] = std::nullopt;
  }
  ExpectTheNewestOfAll();
}

TEST_F(SortedRowsTest, ProgressMayGiveUp) {
  AddLog(3, 100);
  EXPECT_THROW(SortedRows(sources_, layout_, 1 << 20, [](int64_t) { throw 5; }), int);
}

TEST_F(SortedRowsTest, ADamagedPageIsAnErrorThatNamesIt) {
  AddLog(3, 1000);
  std::vector<std::byte> page(512);
  PageFile& file = *sources_.logs[0].log->file;
  file.Read(2 * 512, page.data(), 512);
  page[99] ^= std::byte{1};
  file.Write(2 * 512, page.data(), 512);
  try {
    Read(1 << 20);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorruption);
    EXPECT_THAT(e.what(), HasSubstr("00000003.log: page 2 is damaged"));
  }
}

}  // namespace
}  // namespace terrace
