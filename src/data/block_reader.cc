#include "data/block_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/byte_source.h"
#include "data/text_scan.h"

namespace terrace {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

[[noreturn]] void FailChanged(const std::string& file, int64_t offset) {
  throw Error(ErrorCode::kUsage,
              fmt::format("{} has changed since the position was saved: no line starts at byte {} "
                          "of its text; restore the file, or train from the start",
                          file, offset));
}

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
  bytes_before_ = bytes_read_;
  file_ = OpenBytes(env_, path, &bytes_read_, options_.cancelled);
  at_start_ = true;
  next_offset_ = 0;
  next_line_ = 1;
}

std::unique_ptr<TextBlock> BlockReader::NewBlock() const {
  auto block = std::make_unique<TextBlock>();
  block->buffer = std::make_unique_for_overwrite<char[]>(capacity_ + 1 + kTextPadding);
  return block;
}

std::unique_ptr<TextBlock> BlockReader::GoTo(const ChunkPlace& place) {
  next_path_ = static_cast<size_t>(place.file);
  bytes_read_ = place.bytes_before;
  if (place.offset == 0) return nullptr;
  OpenNext();
  std::unique_ptr<TextBlock> first = NewBlock();
  Fill(first.get());
  first->file = file_name_;
  if (first->begin == first->end || !SkipTo(*first, place.offset))
    FailChanged(*file_name_, place.offset);
  next_offset_ = place.offset;
  next_line_ = place.line;
  must_have_more_ = true;
  return first;
}

bool BlockReader::SkipTo(const TextBlock& first, int64_t offset) {
  int64_t begin = next_offset_;                           // of rest_
  if (static_cast<int64_t>(first.end) >= next_offset_) {  // it is no line that was cut
    rest_.insert(0, first.buffer.get(), static_cast<size_t>(next_offset_));
    begin = 0;
  }
  if (offset < begin) return false;
  const auto ahead = static_cast<uint64_t>(offset - begin);
  if (ahead <= rest_.size()) {
    const bool found = ahead == 0 || rest_[ahead - 1] == '\n';
    rest_.erase(0, ahead);
    return found;
  }
  if (file_ == nullptr) return false;
  file_->Skip(ahead - rest_.size() - 1);
  rest_.clear();
  char before;
  return file_->Read(&before, 1) == 1 && before == '\n';
}

std::unique_ptr<TextBlock> BlockReader::Next() {
  for (;;) {
    if (file_ == nullptr && rest_.empty()) {
      if (must_have_more_) FailChanged(*file_name_, next_offset_);
      if (next_path_ == paths_.size()) return nullptr;
      OpenNext();
    }
    std::unique_ptr<TextBlock> block = NewBlock();
    block->place = {static_cast<int64_t>(next_path_) - 1, next_offset_, next_line_, bytes_before_};
    Fill(block.get());
    if (block->begin == block->end) continue;  // nothing was left of this file
    must_have_more_ = false;
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
  bool enough = options_.eager && rest_.find('\n') != std::string::npos;
  rest_.clear();
  while (size < capacity_ && file_ != nullptr && !enough) {
    const size_t n = file_->Read(buffer + size, capacity_ - size);
    size += n;
    if (n == 0) file_ = nullptr;
    enough = options_.eager && std::memchr(buffer + size - n, '\n', n) != nullptr;
  }
  block->end = size;
  if (at_start_) {
    at_start_ = false;
    block->starts_file = true;
    if (std::string_view(buffer, size).starts_with(kByteOrderMark))
      block->begin = kByteOrderMark.size();
  }
  next_offset_ += static_cast<int64_t>(size);
  if (file_ == nullptr) {
    if (size > block->begin && buffer[size - 1] != '\n') buffer[block->end++] = '\n';
    return;
  }
  const size_t last_line_end = std::string_view(buffer, size).rfind('\n');
  if (last_line_end == std::string_view::npos) return CutLongLine(block);
  block->end = last_line_end + 1;
  rest_.assign(buffer + block->end, size - block->end);
  next_offset_ -= static_cast<int64_t>(rest_.size());
}

void BlockReader::CutLongLine(TextBlock* block) {
  char skipped[1 << 12];
  while (file_ != nullptr) {
    // What is left of it has to fit the next block.
    const size_t n = file_->Read(skipped, std::min(sizeof(skipped), capacity_));
    if (n == 0) file_ = nullptr;
    next_offset_ += static_cast<int64_t>(n);
    const auto* line_end = static_cast<const char*>(std::memchr(skipped, '\n', n));
    if (line_end == nullptr) continue;
    rest_.assign(line_end + 1, skipped + n - (line_end + 1));
    next_offset_ -= static_cast<int64_t>(rest_.size());
    break;
  }
  block->end = std::min(block->end, block->begin + options_.max_line_bytes + 2);
  block->buffer[block->end++] = '\n';
}

}  // namespace terrace
