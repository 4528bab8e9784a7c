// Text files cut into blocks of whole lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "data/chunk_producer.h"
#include "data/number.h"

namespace terrace {

// Whole lines of one file. The text ends with '\n' (supplied if the file's last line has none) and
// kTextPadding readable bytes follow it.
struct TextBlock {
  std::shared_ptr<const std::string> file;  // as messages name it
  bool starts_file = false;
  ChunkPlace place;  // as it was read, before TakeLine
  int64_t first_line = 1;
  int64_t lines = 0;
  std::unique_ptr<char[]> buffer;
  size_t begin = 0;
  size_t end = 0;

  std::string_view text() const { return {buffer.get() + begin, end - begin}; }
  // Takes the first line off; the result has no line end and lives as long as the block.
  std::string_view TakeLine();
};

// Line without its '\r', if it has one.
inline std::string_view WithoutCr(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

struct BlockOptions {
  size_t block_bytes = size_t{1} << 20;
  size_t max_line_bytes = size_t{1} << 20;
  bool eager = false;  // a block ends where a read brought whole lines, full or not
  std::shared_ptr<const std::atomic<bool>> cancelled = {};  // as OpenBytes has it
};

// Reads files one after another. Where blocks are cut depends on the files alone, not on how many
// bytes each read returns, unless it is to be eager. A byte-order mark is left out. Of a line that
// does not fit a block only the first max_line_bytes + 2 bytes are kept, enough for whoever parses
// it to see that it is too long. One thread.
class BlockReader {
 public:
  BlockReader(Env& env, std::vector<std::string> paths, BlockOptions options);

  // Before the first Next: makes that begin where a block of the same files did. Returns the first
  // block of that file, for its header; null if the place is the start of the file. Throws as Next
  // does, and Error(kUsage) if no line starts there.
  std::unique_ptr<TextBlock> GoTo(const ChunkPlace& place);
  // Null at the end. Throws what OpenBytes and its Read throw.
  std::unique_ptr<TextBlock> Next();
  // Bytes taken from the files so far.
  int64_t bytes_read() const { return bytes_read_; }

 private:
  void OpenNext();
  std::unique_ptr<TextBlock> NewBlock() const;
  // Of the current file, whose bytes before `offset` were read. False if no line starts there.
  bool SkipTo(const TextBlock& first, int64_t offset);
  // Fills `block` from the current file; closes the file at its end.
  void Fill(TextBlock* block);
  void CutLongLine(TextBlock* block);

  Env& env_;
  const std::vector<std::string> paths_;
  const BlockOptions options_;
  const size_t capacity_;  // bytes of a block before its supplied '\n'
  int64_t bytes_read_ = 0;
  size_t next_path_ = 0;
  std::unique_ptr<SequentialFile> file_;
  std::shared_ptr<const std::string> file_name_;
  bool at_start_ = false;
  // Of the current file.
  int64_t bytes_before_ = 0;  // of input, in the files before it
  int64_t next_offset_ = 0;
  int64_t next_line_ = 1;
  std::string rest_;             // read, from next_offset_ on
  bool must_have_more_ = false;  // a block that is known to have been there comes next
};

}  // namespace terrace
