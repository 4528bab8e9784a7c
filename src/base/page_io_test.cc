#include "base/page_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "base/env.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr size_t kFilePages = 300;
constexpr size_t kFiles = 3;

// A page of file f is 512 copies of one value that no other page has.
uint64_t ValueOf(size_t file, uint64_t page) { return RandomBits(7, file, page); }

struct Engine {
  IoEngine engine;
  bool direct;
};

std::string NameOf(const ::testing::TestParamInfo<Engine>& info) {
  return std::string(info.param.engine == IoEngine::kUring ? "Uring" : "Threads") +
         (info.param.direct ? "Direct" : "Buffered");
}

class BatchReaderTest : public ::testing::TestWithParam<Engine> {
 protected:
  BatchReaderTest() {
    std::string pattern = ::testing::TempDir() + "/pages_XXXXXX";
    dir_ = mkdtemp(pattern.data());
    ReadSpace space(kFilePages * kPageAlign);
    for (size_t f = 0; f < kFiles; ++f) {
      files_.push_back(
          env_.OpenPages(dir_ + "/" + std::to_string(f), PageMode::kCreate, GetParam().direct));
      for (size_t i = 0; i < kFilePages; ++i)
        std::fill_n(reinterpret_cast<uint64_t*>(space.data + i * kPageAlign), kPageAlign / 8,
                    ValueOf(f, i));
      files_[f]->Write(0, space.data, space.size);
    }
  }
  ~BatchReaderTest() override { std::filesystem::remove_all(dir_); }

  // Memory that direct files take.
  struct ReadSpace {
    explicit ReadSpace(size_t n) : size(n), data(static_cast<std::byte*>(aligned_alloc(4096, n))) {}
    ~ReadSpace() { free(data); }
    ReadSpace(const ReadSpace&) = delete;
    ReadSpace& operator=(const ReadSpace&) = delete;
    const size_t size;
    std::byte* const data;
  };

  std::unique_ptr<BatchReader> NewReader(int depth, size_t max_read = 8 * kPageAlign) {
    std::unique_ptr<BatchReader> reader;
    try {
      reader = env_.NewBatchReader({GetParam().engine, depth, max_read});
    } catch (const Error&) {  // the system does not permit io_uring
    }
    return reader;
  }

  std::vector<PageRead> RandomReads(size_t n, size_t max_pages) {
    std::vector<PageRead> reads(n);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t pages = 1 + BelowN(RandomBits(1, i, 0), max_pages);
      const uint64_t first = BelowN(RandomBits(1, i, 1), kFilePages - pages + 1);
      reads[i] = {files_[BelowN(RandomBits(1, i, 2), kFiles)].get(), first * kPageAlign,
                  static_cast<uint32_t>(pages * kPageAlign)};
    }
    return reads;
  }

  size_t FileOf(const PageRead& read) const {
    return static_cast<size_t>(
        std::find_if(files_.begin(), files_.end(),
                     [&](const auto& file) { return file.get() == read.file; }) -
        files_.begin());
  }

  // Reads all and checks that each came once with its bytes.
  void ExpectRightBytes(BatchReader& reader, const std::vector<PageRead>& reads) {
    std::vector<int> seen(reads.size());
    size_t wrong = 0;
    const std::thread::id caller = std::this_thread::get_id();
    reader.Read(reads, [&](size_t i, const std::byte* bytes) {
      ++seen[i];
      wrong += std::this_thread::get_id() != caller;
      const size_t file = FileOf(reads[i]);
      for (uint64_t at = 0; at < reads[i].size; at += sizeof(uint64_t)) {
        uint64_t value = 0;
        std::memcpy(&value, bytes + at, sizeof(value));
        wrong += value != ValueOf(file, (reads[i].offset + at) / kPageAlign);
      }
    });
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(seen, std::vector<int>(reads.size(), 1));
  }

  Env& env_ = PosixEnv();
  std::string dir_;
  std::vector<std::unique_ptr<PageFile>> files_;
};

#define READER_OR_SKIP(reader, ...)                                           \
  const std::unique_ptr<BatchReader> reader##_owner = NewReader(__VA_ARGS__); \
  if (reader##_owner == nullptr) GTEST_SKIP() << "io_uring is not permitted"; \
  BatchReader& reader = *reader##_owner

TEST_P(BatchReaderTest, BringsTheBytesOfEachReadOnce) {
  for (const int depth : {1, 2, 16, 256}) {
    READER_OR_SKIP(reader, depth);
    ExpectRightBytes(reader, {});
    ExpectRightBytes(reader, RandomReads(1, 1));
    ExpectRightBytes(reader, RandomReads(static_cast<size_t>(depth), 8));
    ExpectRightBytes(reader, RandomReads(1000, 8));
  }
}

TEST_P(BatchReaderTest, TakesReadsInAnyOrder) {
  READER_OR_SKIP(reader, 32);
  std::vector<PageRead> reads = RandomReads(500, 3);
  std::sort(reads.begin(), reads.end(),
            [](const PageRead& a, const PageRead& b) { return a.offset < b.offset; });
  ExpectRightBytes(reader, reads);
  std::reverse(reads.begin(), reads.end());
  ExpectRightBytes(reader, reads);
}

TEST_P(BatchReaderTest, ReadsBytesAtAnyPlaceOfABufferedFile) {
  READER_OR_SKIP(reader, 8, 1000);
  const auto file = env_.OpenPages(dir_ + "/1", PageMode::kRead, false);
  const std::vector<PageRead> reads{{file.get(), 4095, 2}, {file.get(), 17, 1000}};
  std::vector<std::string> got(2);
  reader.Read(reads, [&](size_t i, const std::byte* bytes) {
    got[i].assign(reinterpret_cast<const char*>(bytes), reads[i].size);
  });
  for (size_t i = 0; i < 2; ++i) {
    std::string expected(reads[i].size, 0);
    reads[i].file->Read(reads[i].offset, expected.data(), expected.size());
    EXPECT_EQ(got[i], expected);
  }
}

TEST_P(BatchReaderTest, MayMoveToAnotherThread) {
  READER_OR_SKIP(reader, 64);
  for (int i = 0; i < 3; ++i) std::jthread([&] { ExpectRightBytes(reader, RandomReads(200, 2)); });
  ExpectRightBytes(reader, RandomReads(200, 2));
}

TEST_P(BatchReaderTest, ReadPastTheEndSaysWhereTheFileEnds) {
  READER_OR_SKIP(reader, 16);
  files_[1]->Truncate(10 * kPageAlign + 700);
  std::vector<PageRead> reads = RandomReads(300, 1);
  std::erase_if(reads, [&](const PageRead& read) { return read.file == files_[1].get(); });
  for (const uint64_t page : {9, 10, 11, 5000}) {
    reads[100] = {files_[1].get(), page * kPageAlign, 2 * kPageAlign};
    try {
      reader.Read(reads, [](size_t, const std::byte*) {});
      FAIL() << page;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kIo);
      EXPECT_EQ(std::string(e.what()),
                dir_ + "/1: cannot read 8192 bytes at " + std::to_string(page * kPageAlign) +
                    ": the file ends at 41660; it was cut short, or is not the file it should be");
    }
  }
  reads.erase(reads.begin() + 100);
  ExpectRightBytes(reader, reads);
}

// A file whose descriptor does not work.
class BadFile : public PageFile {
 public:
  void Read(uint64_t, void*, size_t) override {}
  void Write(uint64_t, const void*, size_t) override {}
  void Sync() override {}
  void Truncate(uint64_t) override {}
  uint64_t Size() override { return 0; }
  const std::string& path() const override { return path_; }
  bool direct() const override { return false; }
  int descriptor() const override { return -1; }

 private:
  const std::string path_ = "bad";
};

TEST_P(BatchReaderTest, FailedReadEndsTheBatchAndTheReaderGoesOn) {
  READER_OR_SKIP(reader, 16);
  BadFile bad;
  for (const size_t where : {size_t{0}, size_t{50}, size_t{199}}) {
    std::vector<PageRead> reads = RandomReads(200, 4);
    reads[where].file = &bad;
    size_t calls = 0;
    try {
      reader.Read(reads, [&](size_t i, const std::byte*) {
        EXPECT_NE(i, where);
        ++calls;
      });
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kIo);
      EXPECT_THAT(e.what(), ::testing::HasSubstr("bad: cannot read "));
      EXPECT_THAT(e.what(), ::testing::HasSubstr("Bad file descriptor"));
    }
    EXPECT_LT(calls, reads.size());
    ExpectRightBytes(reader, RandomReads(100, 8));
  }
}

TEST_P(BatchReaderTest, ExceptionOfDoneEndsTheBatchAndTheReaderGoesOn) {
  READER_OR_SKIP(reader, 16);
  for (const int allowed : {0, 1, 100, 199}) {
    int calls = 0;
    EXPECT_THROW(reader.Read(RandomReads(200, 4),
                             [&](size_t, const std::byte*) {
                               if (calls++ == allowed) throw std::runtime_error("enough");
                             }),
                 std::runtime_error);
    EXPECT_EQ(calls, allowed + 1);
    ExpectRightBytes(reader, RandomReads(100, 8));
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, BatchReaderTest,
                         ::testing::Values(Engine{IoEngine::kUring, true},
                                           Engine{IoEngine::kUring, false},
                                           Engine{IoEngine::kThreads, true},
                                           Engine{IoEngine::kThreads, false}),
                         NameOf);

TEST(BatchReaderChoice, VariableChoosesTheEngine) {
  const auto name = [](IoEngine engine) {
    return std::string(PosixEnv().NewBatchReader({engine, 4, kPageAlign})->name());
  };
  setenv("TERRACE_IO", "threads", 1);
  EXPECT_EQ(name(IoEngine::kAuto), "threads");
  setenv("TERRACE_IO", "aio", 1);
  EXPECT_EQ(name(IoEngine::kThreads), "threads");
  EXPECT_THROW(name(IoEngine::kAuto), Error);
  unsetenv("TERRACE_IO");
  EXPECT_THAT(name(IoEngine::kAuto), ::testing::AnyOf("io_uring", "threads"));
}

TEST(BatchReaderOptions, BuffersAreWholeHugePagesWhereThatIsNotMuchMore) {
  BatchReaderOptions options;
  options.max_read = 16 << 10;
  options.depth = 20;
  EXPECT_EQ(options.memory_bytes(), size_t{640} << 10);
  options.depth = 40;
  EXPECT_EQ(options.memory_bytes(), size_t{2} << 20);
  options.depth = 80;
  EXPECT_EQ(options.memory_bytes(), size_t{4} << 20);
}

}  // namespace
}  // namespace terrace
