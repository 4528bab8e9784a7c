// Damaged files: every kind of damage is refused by name, and nothing wrong is ever returned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/test_dir.h"
#include "tier/disk_manifest.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DiskCorruption : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.row_bytes = 24;
    options_.page_bytes = 512;
    options_.partitions = 2;
    options_.memory_bytes = 8 << 20;
    options_.background = false;
    auto store = DiskStore::Open(dir_.path(), options_);
    PutVersion(*store, Keys(0, 200), 1, &contents_);
    store->Merge();
    PutVersion(*store, Keys(100, 250), 2, &contents_);
    DeleteKeys(*store, Keys(0, 20), &contents_);
    store->Commit();
    store.reset();
    manifest_ = ReadManifest(PosixEnv(), dir_.path());
    ASSERT_NE(manifest_.partitions[0].base.file, 0u);
    ASSERT_EQ(manifest_.partitions[0].logs.size(), 1u);
  }

  static std::vector<uint64_t> Keys(uint64_t first, uint64_t end) {
    std::vector<uint64_t> keys;
    for (uint64_t key = first; key < end; ++key) keys.push_back(key);
    return keys;
  }
  const PageLayout& layout() const { return manifest_.layout; }
  std::string base_path() const { return BasePath(dir_.path(), manifest_.partitions[0].base.file); }
  std::string log_path() const {
    return LogPath(dir_.path(), manifest_.partitions[0].logs[0].file);
  }
  std::string manifest_path() const { return ManifestPath(dir_.path()); }

  // In place, so that a store that is open sees it.
  static void Flip(const std::string& path, size_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
    ASSERT_TRUE(file.good()) << path << " at " << offset;
  }

  // Calls f and returns the text of the Error(kCorruption) that it throws, else nothing.
  static std::string CorruptionOf(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kCorruption) << e.what();
      return e.what();
    }
    return {};
  }
  std::string OpenError() {
    return CorruptionOf([&] { DiskStore::Open(dir_.path(), options_); });
  }
  std::vector<std::string> Problems() { return VerifyStore(PosixEnv(), dir_.path(), {}).problems; }
  void ExpectOneProblem(const std::string& path, const std::string& what) {
    const std::vector<std::string> problems = Problems();
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_THAT(problems[0], HasSubstr(path));
    EXPECT_THAT(problems[0], HasSubstr(what));
  }

  // Each key alone is right or refused with the file and the page. Returns how many are refused.
  size_t CountRefused(DiskStore& store, const std::string& path, int64_t page) {
    size_t refused = 0;
    for (uint64_t key : Keys(0, 300)) {
      const std::string error = CorruptionOf([&] {
        const uint64_t one[] = {key};
        EXPECT_EQ(GetDifference(store, one, contents_), "");
      });
      if (error.empty()) continue;
      ++refused;
      EXPECT_THAT(error, HasSubstr(path + ": page " + std::to_string(page) + " is damaged"));
    }
    return refused;
  }

  TestDir dir_;
  DiskOptions options_;
  Contents contents_;
  DiskManifest manifest_;
};

// Checksum, counts, first and last mix, first row, last row's end.
std::vector<size_t> PlacesOnPage(const PageLayout& layout) {
  return {0, 7, 8, 10, 15, 16, layout.rows_offset - 1, layout.rows_offset, layout.page_bytes - 1};
}

TEST_F(DiskCorruption, ADamagedDataPageIsRefusedAndOthersAreNot) {
  for (int64_t page = 0; page < manifest_.partitions[0].base.pages; ++page) {
    for (size_t place : PlacesOnPage(layout())) {
      SCOPED_TRACE(testing::Message() << "page " << page << " byte " << place);
      const size_t offset = static_cast<size_t>(page) * layout().page_bytes + place;
      Flip(base_path(), offset);
      ExpectOneProblem(base_path(), "page " + std::to_string(page));
      {
        auto store = DiskStore::Open(dir_.path(), options_);
        const size_t refused = CountRefused(*store, base_path(), page);
        EXPECT_GT(refused, 0u);
        EXPECT_LE(refused, layout().rows_per_page + 40) << "absent keys may be refused, too";
        const std::string damaged = ": page " + std::to_string(page) + " is damaged";
        EXPECT_THAT(CorruptionOf([&] { ReadAll(*store); }), HasSubstr(base_path() + damaged));
        EXPECT_THAT(CorruptionOf([&] { store->Merge(); }), HasSubstr(base_path() + damaged));
        EXPECT_THAT(store->stats().merge_failure, HasSubstr(damaged));
        EXPECT_EQ(CountRefused(*store, base_path(), page), refused);
        store->Commit();  // what can be read and written is not held back by it
      }
      Flip(base_path(), offset);
      ASSERT_THAT(Problems(), testing::IsEmpty());
    }
  }
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir_.path(), options_), contents_), "");
}

TEST_F(DiskCorruption, DamagedFencesFiltersAndDescriptionsAreRefusedWhenOpening) {
  const size_t pages = static_cast<size_t>(manifest_.partitions[0].base.pages);
  const size_t fences = pages * layout().page_bytes;
  const size_t filter = fences + pages * 8;
  const size_t size = static_cast<size_t>(PosixEnv().FileSize(base_path()));
  const size_t last = size - layout().page_bytes;
  for (size_t offset : {fences, fences + 7, filter - 1, filter, filter + 31, last, last + 8,
                        last + 40, last + 8 * 10, size - 1}) {
    SCOPED_TRACE(offset);
    Flip(base_path(), offset);
    EXPECT_THAT(OpenError(), HasSubstr(base_path() + ": "));
    ExpectOneProblem(base_path(), "damaged");
    Flip(base_path(), offset);
  }
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir_.path(), options_), contents_), "");
}

TEST_F(DiskCorruption, ADamagedLogPageIsRefused) {
  for (int64_t page = 0; page < manifest_.partitions[0].logs[0].pages; ++page) {
    for (size_t place : PlacesOnPage(layout())) {
      SCOPED_TRACE(testing::Message() << "page " << page << " byte " << place);
      const size_t offset = static_cast<size_t>(page) * layout().page_bytes + place;
      const std::string damaged = log_path() + ": page " + std::to_string(page) + " is damaged";
      auto store = DiskStore::OpenReadOnly(dir_.path(), options_);
      Flip(log_path(), offset);
      const size_t refused = CountRefused(*store, log_path(), page);
      EXPECT_GT(refused, 0u);
      EXPECT_LE(refused, layout().rows_per_page);
      EXPECT_THAT(CorruptionOf([&] { ReadAll(*store); }), HasSubstr(damaged));
      EXPECT_THAT(OpenError(), HasSubstr(damaged));
      ExpectOneProblem(log_path(), "page " + std::to_string(page));
      Flip(log_path(), offset);
    }
  }
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir_.path(), options_), contents_), "");
}

TEST_F(DiskCorruption, ADamagedManifestIsRefused) {
  const size_t size = ReadWholeFile(PosixEnv(), manifest_path()).size();
  for (size_t offset = 0; offset < size; ++offset) {
    SCOPED_TRACE(offset);
    Flip(manifest_path(), offset);
    EXPECT_THAT(OpenError(), HasSubstr(manifest_path()));
    EXPECT_THAT(CorruptionOf([&] { Problems(); }), HasSubstr(manifest_path()));
    Flip(manifest_path(), offset);
  }
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir_.path(), options_), contents_), "");
}

TEST_F(DiskCorruption, FilesThatAreCutOffOrMissingAreRefused) {
  for (const std::string& path : {base_path(), log_path(), manifest_path()}) {
    const std::string whole = ReadWholeFile(PosixEnv(), path);
    for (size_t left : {size_t{0}, size_t{100}, size_t{512}, whole.size() - 1}) {
      if (left >= whole.size()) continue;
      SCOPED_TRACE(testing::Message() << path << " cut to " << left);
      std::filesystem::resize_file(path, left);
      EXPECT_THAT(OpenError(), HasSubstr(path));
      if (path != manifest_path()) {
        EXPECT_THAT(Problems(), AllOf(SizeIs(Ge(1u)), Each(HasSubstr(path))));
      }
      WriteFileAtomically(PosixEnv(), path, whole);
    }
    if (path == manifest_path()) continue;
    std::filesystem::remove(path);
    EXPECT_THROW(DiskStore::Open(dir_.path(), options_), Error);
    EXPECT_THAT(Problems(), ElementsAre(HasSubstr(path)));
    WriteFileAtomically(PosixEnv(), path, whole);
  }
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir_.path(), options_), contents_), "");
}

TEST_F(DiskCorruption, APageInAnotherPagesPlaceIsRefused) {
  std::string bytes = ReadWholeFile(PosixEnv(), base_path());
  bytes.replace(0, layout().page_bytes, bytes.substr(layout().page_bytes, layout().page_bytes));
  WriteFileAtomically(PosixEnv(), base_path(), bytes);
  EXPECT_GT(CountRefused(*DiskStore::Open(dir_.path(), options_), base_path(), 0), 0u);
  ExpectOneProblem(base_path(), "page 0");
}

TEST_F(DiskCorruption, FilesInEachOthersPlaceAreRefused) {
  const std::string other = BasePath(dir_.path(), manifest_.partitions[1].base.file);
  const std::string temporary = dir_.path() + "/aside";
  std::filesystem::rename(base_path(), temporary);
  std::filesystem::rename(other, base_path());
  std::filesystem::rename(temporary, other);
  EXPECT_THAT(OpenError(), AnyOf(HasSubstr(base_path()), HasSubstr(other)));
  const std::vector<std::string> problems = Problems();
  EXPECT_THAT(problems, Contains(HasSubstr(base_path())));
  EXPECT_THAT(problems, Contains(HasSubstr(other)));
}

}  // namespace
}  // namespace terrace
