#include "data/block_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "data/compress_testing.h"
#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Each block as "file:first_line:text".
std::vector<std::string> Blocks(MemoryEnv& env, std::vector<std::string> paths,
                                BlockOptions options) {
  BlockReader reader(env, std::move(paths), options);
  std::vector<std::string> blocks;
  while (const std::unique_ptr<TextBlock> block = reader.Next()) {
    EXPECT_EQ(block->lines, std::ranges::count(block->text(), '\n'));
    blocks.push_back(*block->file + ":" + std::to_string(block->first_line) + ":" +
                     std::string(block->text()));
  }
  return blocks;
}

TEST(BlockReader, CutsAtLineEndsAndCountsLines) {
  MemoryEnv env;
  env.files["a"] = "one\ntwo\nthree\nfour\n";
  EXPECT_THAT(Blocks(env, {"a"}, {10, 5}),
              ElementsAre("a:1:one\ntwo\n", "a:3:three\n", "a:4:four\n"));
}

TEST(BlockReader, ABlockNeverSpansFilesAndLinesStartAnew) {
  MemoryEnv env;
  env.files["a"] = "one\ntwo";
  env.files["b"] = "";
  env.files["c"] = "three\n";
  EXPECT_THAT(Blocks(env, {"a", "b", "c"}, {100, 50}),
              ElementsAre("a:1:one\ntwo\n", "c:1:three\n"));
}

TEST(BlockReader, LeavesAByteOrderMarkOut) {
  MemoryEnv env;
  env.files["a"] =
      "\xef\xbb\xbf"
      "12345\r\nx\n";
  env.files["b"] = "\xef\xbb\xbf";
  EXPECT_THAT(Blocks(env, {"a", "b"}, {1, 5}), ElementsAre("a:1:12345\r\n", "a:2:x\n"));
}

TEST(BlockReader, KeepsOnlyTheStartOfALineThatIsTooLong) {
  MemoryEnv env;
  env.files["a"] = "ok\n" + std::string(10'000, 'x') + "\nafter\n" + std::string(10'000, 'y');
  EXPECT_THAT(Blocks(env, {"a"}, {1, 5}),
              ElementsAre("a:1:ok\n", "a:2:xxxxxxx\n", "a:3:after\n", "a:4:yyyyyyy\n"));
}

TEST(BlockReader, ALineOfTheGreatestLengthIsWhole) {
  MemoryEnv env;
  env.files["a"] = "12345\r\n12345\n12345";
  EXPECT_THAT(Blocks(env, {"a"}, {1, 5}),
              ElementsAre("a:1:12345\r\n", "a:2:12345\n", "a:3:12345\n"));
}

TEST(BlockReader, BlocksDependOnTheFilesAlone) {
  EXPECT_TRUE(rc::check([] {
    MemoryEnv env;
    env.files["a"] = *rc::gen::container<std::string>(rc::gen::element('a', '\n', '\r', '\xef'));
    env.files["z"] = Zstd(env.files["a"]);
    const BlockOptions options{*rc::gen::inRange<size_t>(1, 20), *rc::gen::inRange<size_t>(1, 20)};
    const auto whole = Blocks(env, {"a", "z"}, options);
    env.max_read = *rc::gen::inRange<size_t>(1, 5);
    RC_ASSERT(Blocks(env, {"a", "z"}, options) == whole);
  }));
}

TEST(BlockReader, TextIsNeitherLostNorChanged) {
  EXPECT_TRUE(rc::check([] {
    MemoryEnv env;
    env.files["a"] = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n'));
    BlockReader reader(env, {"a"}, {*rc::gen::inRange<size_t>(1, 20), 1000});
    std::string text;
    int64_t line = 1;
    while (const std::unique_ptr<TextBlock> block = reader.Next()) {
      RC_ASSERT(block->first_line == line);
      line += block->lines;
      text += block->text();
    }
    std::string expected = env.files["a"];
    if (!expected.empty() && expected.back() != '\n') expected += '\n';
    RC_ASSERT(text == expected);
    RC_ASSERT(reader.bytes_read() == static_cast<int64_t>(env.files["a"].size()));
  }));
}

// A reader that starts where a block began gives the rest, cut into blocks of its own size.
TEST(BlockReader, GoesToWhereABlockBegan) {
  EXPECT_TRUE(rc::check([] {
    MemoryEnv env;
    const auto text = rc::gen::container<std::string>(
        rc::gen::weightedElement<char>({{5, 'a'}, {1, '\n'}, {1, '\r'}, {1, '\xef'}}));
    env.files["a"] = *text;
    env.files["b"] = "\xef\xbb\xbf" + *text + *text + *text;
    env.files["z"] = Zstd(env.files["b"]);
    env.max_read = *rc::gen::inRange<size_t>(1, 50);
    const auto size = rc::gen::inRange<size_t>(1, 30);
    const std::vector<std::string> paths = {"a", "b", "z"};
    // No line is cut, so that all of the text is in the blocks.
    const size_t longest = 1000;
    BlockReader reader(env, paths, {*size, longest});
    std::vector<std::pair<ChunkPlace, std::string>> blocks;
    while (const std::unique_ptr<TextBlock> block = reader.Next())
      blocks.emplace_back(block->place, std::string(block->text()));
    for (size_t i = 0; i < blocks.size(); ++i) {
      std::string expected;
      for (size_t j = i; j < blocks.size(); ++j) expected += blocks[j].second;
      BlockReader resumed(env, paths, {*size, longest});
      const std::unique_ptr<TextBlock> first = resumed.GoTo(blocks[i].first);
      RC_ASSERT((first == nullptr) == (blocks[i].first.offset == 0));
      std::string rest;
      while (const std::unique_ptr<TextBlock> block = resumed.Next()) {
        RC_ASSERT(!rest.empty() || block->place == blocks[i].first);
        rest += block->text();
      }
      RC_ASSERT(rest == expected);
    }
  }));
}

TEST(BlockReader, GoesBehindALineThatIsTooLong) {
  MemoryEnv env;
  env.files["a"] = "head\n" + std::string(9000, 'x') + "\nb\n" + std::string(9000, 'y') + "\nc";
  for (const size_t block_bytes : {1, 9, 10'000}) {
    BlockReader reader(env, {"a"}, {block_bytes, 5});
    EXPECT_EQ(reader.GoTo({.offset = 9006, .line = 3})->TakeLine(), "head");
    std::string text;
    while (const std::unique_ptr<TextBlock> block = reader.Next()) {
      if (text.empty()) {
        EXPECT_EQ(block->first_line, 3);
      }
      text += block->text();
    }
    EXPECT_THAT(text, ::testing::StartsWith("b\nyyyyyyy"));
    EXPECT_THAT(text, ::testing::EndsWith("y\nc\n"));
  }
}

TEST(BlockReader, GoesOnlyToTheStartOfALine) {
  MemoryEnv env;
  env.files["a"] = "one\n" + std::string(9000, 'x') + "\nthree\n";
  for (const int64_t offset : {1, 3, 5, 12, 4000, 9004, 9006, 9011, 9012, 50'000})
    EXPECT_EQ(CodeOf([&] {
                BlockReader reader(env, {"a"}, {1, 5});
                reader.GoTo({.offset = offset});
                reader.Next();
              }),
              ErrorCode::kUsage)
        << offset;
}

TEST(BlockReader, TakeLineMovesTheStart) {
  MemoryEnv env;
  env.files["a"] = "head\r\nbody\n";
  BlockReader reader(env, {"a"}, {});
  const std::unique_ptr<TextBlock> block = reader.Next();
  EXPECT_TRUE(block->starts_file);
  EXPECT_EQ(block->TakeLine(), "head");
  EXPECT_EQ(block->text(), "body\n");
  EXPECT_EQ(block->first_line, 2);
  EXPECT_EQ(block->lines, 1);
}

TEST(BlockReader, AMissingFileIsAnError) {
  MemoryEnv env;
  EXPECT_EQ(CodeOf([&] { Blocks(env, {"nowhere"}, {}); }), ErrorCode::kIo);
}

}  // namespace
}  // namespace terrace
