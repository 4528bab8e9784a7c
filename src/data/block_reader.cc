#include "data/block_reader.h"

#include <algorithm>
#include <cstring>

#include "data/byte_source.h"
#include "data/text_scan.h"

namespace terrace {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// A line of max_line_bytes may have a mark before it and "\r\n" behind it.
constexpr size_t kAroundLine = kByteOrderMark.size() + 2;

}  // namespace

std::string_view TextBlock::TakeLine() {
  const std::string_view all = text();
  const size_t length = all.find('\n');
  begin += length + 1;
  ++first_line;
  --lines;
  return WithoutCr(all.substr(0, length));
}

BlockReader::BlockReader(Env& env, std::vector<std::string> paths, BlockOptions options)
    : env_(env),
      paths_(std::move(paths)),
      options_(options),
      capacity_(std::max(options.block_bytes, options.max_line_bytes + kAroundLine)) {}

void BlockReader::OpenNext() {
  const std::string& path = paths_[next_path_++];
  file_name_ = std::make_shared<const std::string>(DisplayPath(path));
  file_ = OpenBytes(env_, path, &bytes_read_);
  at_start_ = true;
  next_line_ = 1;
}

std::unique_ptr<TextBlock> BlockReader::Next() {
  for (;;) {
    if (file_ == nullptr) {
      if (next_path_ == paths_.size()) return nullptr;
      OpenNext();
    }
    auto block = std::make_unique<TextBlock>();
    block->buffer = std::make_unique_for_overwrite<char[]>(capacity_ + 1 + kTextPadding);
    Fill(block.get());
    if (block->begin == block->end) continue;  // nothing was left of this file
    std::memset(block->buffer.get() + block->end, 0, kTextPadding);
    block->file = file_name_;
    block->first_line = next_line_;
    block->lines = CountLines(block->text());
    next_line_ += block->lines;
    return block;
  }
}

void BlockReader::Fill(TextBlock* block) {
  char* const buffer = block->buffer.get();
  std::memcpy(buffer, rest_.data(), rest_.size());
  size_t size = rest_.size();
  rest_.clear();
  while (size < capacity_ && file_ != nullptr) {
    const size_t n = file_->Read(buffer + size, capacity_ - size);
    size += n;
    if (n == 0) file_ = nullptr;
  }
  block->end = size;
  if (at_start_) {
    at_start_ = false;
    block->starts_file = true;
    if (std::string_view(buffer, size).starts_with(kByteOrderMark))
      block->begin = kByteOrderMark.size();
  }
  if (file_ == nullptr) {
    if (size > block->begin && buffer[size - 1] != '\n') buffer[block->end++] = '\n';
    return;
  }
  const size_t last_line_end = std::string_view(buffer, size).rfind('\n');
  if (last_line_end == std::string_view::npos) return CutLongLine(block);
  block->end = last_line_end + 1;
  rest_.assign(buffer + block->end, size - block->end);
}

void BlockReader::CutLongLine(TextBlock* block) {
  char skipped[1 << 12];
  while (file_ != nullptr) {
    // What is left of it has to fit the next block.
    const size_t n = file_->Read(skipped, std::min(sizeof(skipped), capacity_));
    if (n == 0) file_ = nullptr;
    const auto* line_end = static_cast<const char*>(std::memchr(skipped, '\n', n));
    if (line_end == nullptr) continue;
    rest_.assign(line_end + 1, skipped + n - (line_end + 1));
    break;
  }
  block->end = std::min(block->end, block->begin + options_.max_line_bytes + 2);
  block->buffer[block->end++] = '\n';
}

}  // namespace terrace
