#include "data/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"
#include "data/compress_testing.h"
#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

std::string ReadBytes(MemoryEnv& env, const std::string& path, size_t read_size = 1000) {
  int64_t consumed = 0;
  const std::unique_ptr<SequentialFile> file = OpenBytes(env, path, &consumed);
  std::string all;
  std::string buffer(read_size, '\0');
  while (const size_t n = file->Read(buffer.data(), buffer.size())) all.append(buffer, 0, n);
  EXPECT_EQ(consumed, static_cast<int64_t>(env.files[path].size()));
  return all;
}

// Text that compresses, but not to nothing.
std::string SampleText(size_t bytes) {
  RandomStream random(3, 0);
  std::string text;
  while (text.size() < bytes) text += std::to_string(random.Next() % 100000) + "\n";
  return text;
}

class ByteSource : public ::testing::TestWithParam<std::string (*)(std::string_view)> {};

TEST_P(ByteSource, GivesTheOriginalBytes) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{3}, size_t{100}, size_t{3'000'000}}) {
    MemoryEnv env;
    const std::string text = size < 4 ? std::string(size, 'x') : SampleText(size);
    env.files["f"] = GetParam()(text);
    EXPECT_EQ(ReadBytes(env, "f", 1 << 20), text);
  }
}

TEST_P(ByteSource, ReadsSeveralPiecesInARow) {
  MemoryEnv env;
  const std::string text = SampleText(10'000);
  env.files["f"] = GetParam()("first\n") + GetParam()("") + GetParam()(text);
  EXPECT_EQ(ReadBytes(env, "f"), "first\n" + text);
}

TEST_P(ByteSource, DoesNotDependOnTheSizeOfReads) {
  MemoryEnv env;
  const std::string text = SampleText(5'000);
  env.files["f"] = GetParam()(text);
  env.max_read = 1;
  EXPECT_EQ(ReadBytes(env, "f", 1), text);
  env.max_read = 7;
  EXPECT_EQ(ReadBytes(env, "f", 13), text);
}

TEST_P(ByteSource, PassesOnASystemError) {
  MemoryEnv env;
  env.files["f"] = GetParam()(SampleText(50'000));
  env.fail_after = 1000;
  EXPECT_EQ(CodeOf([&] { ReadBytes(env, "f"); }), ErrorCode::kIo);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ByteSource, ::testing::Values(&Plain, &Gzip, &Zstd));

class CompressedByteSource : public ByteSource {};

TEST_P(CompressedByteSource, SaysWhereDataAreCutShort) {
  MemoryEnv env;
  const std::string text = SampleText(1'000'000);
  env.files["ads.x"] = GetParam()(text);
  env.files["ads.x"].resize(env.files["ads.x"].size() / 2);
  const auto read = [&] { ReadBytes(env, "ads.x"); };
  EXPECT_THAT(ErrorOf(read), HasSubstr("data are cut short after "));
  EXPECT_THAT(ErrorOf(read), HasSubstr("ads.x: the "));
  EXPECT_EQ(CodeOf(read), ErrorCode::kData);
}

TEST_P(CompressedByteSource, NoticesEveryCut) {
  MemoryEnv env;
  const std::string whole = GetParam()("label,user\n1,2\n");
  for (size_t size = 4; size < whole.size(); ++size) {
    env.files["f"] = whole.substr(0, size);
    EXPECT_EQ(CodeOf([&] { ReadBytes(env, "f"); }), ErrorCode::kData) << size;
  }
}

// Both kinds carry a checksum, so that no changed byte gives other text without an error.
TEST_P(CompressedByteSource, NoticesChangedBytes) {
  const std::string text = SampleText(300);
  const std::string whole = GetParam()(text);
  EXPECT_TRUE(rc::check([&] {
    MemoryEnv env;
    env.files["f"] = whole;
    const auto at = *rc::gen::inRange<size_t>(4, whole.size());
    env.files["f"][at] = static_cast<char>(env.files["f"][at] ^ *rc::gen::inRange(1, 256));
    std::string read;
    try {
      read = ReadBytes(env, "f");
    } catch (const Error& e) {
      RC_ASSERT(e.code() == ErrorCode::kData);
      return;
    }
    RC_ASSERT(read == text);
  }));
}

TEST_P(CompressedByteSource, RefusesOtherBytesBehindTheData) {
  MemoryEnv env;
  env.files["f"] = GetParam()("text") + "garbage";
  EXPECT_THAT(ErrorOf([&] { ReadBytes(env, "f"); }), HasSubstr("are corrupt"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressedByteSource, ::testing::Values(&Gzip, &Zstd));

TEST(GzipSource, ZerosBehindTheDataArePadding) {
  MemoryEnv env;
  env.files["f"] = Gzip("text") + std::string(1000, '\0');
  EXPECT_EQ(ReadBytes(env, "f"), "text");
}

TEST(ZstdSource, SkippableFramesAreSkipped) {
  MemoryEnv env;
  env.files["f"] = std::string(
                       "\x5a\x2a\x4d\x18\x03\x00\x00\x00"
                       "abc",
                       11) +
                   Zstd("text");
  EXPECT_EQ(ReadBytes(env, "f"), "text");
}

TEST(ZstdSource, NoticesAFrameThatIsShorterThanItsHeaderSays) {
  MemoryEnv env;
  // One segment of 31,488 bytes, says the header; then an empty block, the last one.
  env.files["f"] = std::string("\x28\xb5\x2f\xfd\x61\0\0z\5\0\0", 11);
  for (const size_t read_size : {1, 100, 100'000}) {
    int64_t consumed = 0;
    const auto source = OpenBytes(env, "f", &consumed);
    std::string buffer(read_size, '\0');
    EXPECT_THROW(source->Read(buffer.data(), buffer.size()), Error) << read_size;
  }
}

TEST(PlainSource, AShortFileIsNotTakenForACompressedOne) {
  MemoryEnv env;
  env.files["f"] = "\x28\xb5";
  EXPECT_EQ(ReadBytes(env, "f"), "\x28\xb5");
}

}  // namespace
}  // namespace terrace
