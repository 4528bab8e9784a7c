#include "data/compress.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "data/byte_source.h"
#include "data/memory_env.h"

namespace terrace {
namespace {

std::string ReadBack(const std::string& file) {
  MemoryEnv env;
  env.files["f"] = file;
  int64_t consumed = 0;
  const std::unique_ptr<SequentialFile> bytes = OpenBytes(env, "f", &consumed);
  std::string text;
  char buffer[1000];
  while (const size_t n = bytes->Read(buffer, sizeof(buffer))) text.append(buffer, n);
  return text;
}

TEST(Compress, PiecesReadBackAsOneFile) {
  EXPECT_TRUE(rc::check([] {
    const auto compression =
        *rc::gen::element(Compression::kNone, Compression::kGzip, Compression::kZstd);
    std::string text, file;
    for (const std::string& word : *rc::gen::nonEmpty<std::vector<std::string>>()) {
      const std::string piece = "piece " + word + std::string(*rc::gen::inRange(0, 5000), 'x');
      text += piece;
      AppendCompressed(compression, piece, &file);
    }
    RC_ASSERT(ReadBack(file) == text);
  }));
}

TEST(Compress, MakesTextSmaller) {
  const std::string text(100'000, 'a');
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    std::string file = "before";
    AppendCompressed(compression, text, &file);
    EXPECT_TRUE(file.starts_with("before"));
    EXPECT_LT(file.size(), 1000u);
  }
}

TEST(Compress, IsChosenByTheEndOfThePath) {
  EXPECT_EQ(CompressionOfPath("a.tsv"), Compression::kNone);
  EXPECT_EQ(CompressionOfPath("a.gz.tsv"), Compression::kNone);
  EXPECT_EQ(CompressionOfPath("a.tsv.gz"), Compression::kGzip);
  EXPECT_EQ(CompressionOfPath("a.zst"), Compression::kZstd);
}

}  // namespace
}  // namespace terrace
