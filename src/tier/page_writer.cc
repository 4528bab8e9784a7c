#include "tier/page_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace terrace {

PageWriter::PageWriter(Env& env, const std::string& path, bool direct, const PageLayout& layout,
                       uint64_t number, int64_t max_entries, size_t io_bytes)
    : env_(env),
      path_(path),
      layout_(layout),
      number_(number),
      rows_(layout.rows_per_page * layout.row_bytes),
      buffer_(std::max(io_bytes, layout.page_bytes)) {
  if (layout.PagesFor(max_entries) > UINT32_MAX)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: {} rows are more than a file of {} pages holds: create the store "
                            "with more partitions",
                            path, max_entries, UINT32_MAX));
  fences_.reserve(static_cast<size_t>(layout.PagesFor(max_entries)));
  page_.reserve(layout.rows_per_page);
  file_ = env.OpenPages(path, PageMode::kCreate, direct);
}

PageWriter::~PageWriter() {
  if (file_ == nullptr) return;
  file_.reset();
  try {
    env_.Remove(path_);
  } catch (const Error&) {  // opening the store again removes it
  }
}

void PageWriter::Add(uint64_t mix, const std::byte* row) {
  if (page_.empty()) fences_.push_back(mix);
  std::byte* copy = nullptr;
  if (row != nullptr) {
    copy = &rows_[page_.size() * layout_.row_bytes];
    std::memcpy(copy, row, layout_.row_bytes);
  }
  page_.push_back({mix, copy});
  ++entries_;
  if (page_.size() == layout_.rows_per_page) EndPage();
}

void PageWriter::EndPage() {
  WritePage(page_, layout_, number_, static_cast<uint64_t>(pages_), buffer_.data() + buffered_);
  page_.clear();
  ++pages_;
  buffered_ += layout_.page_bytes;
  if (buffered_ + layout_.page_bytes > buffer_.size()) Write();
}

void PageWriter::Write() {
  file_->Write(written_, buffer_.data(), buffered_);
  written_ += buffered_;
  buffered_ = 0;
}

void PageWriter::Flush() {
  if (!page_.empty()) EndPage();
  if (buffered_ > 0) Write();
  fences_.shrink_to_fit();
}

void PageWriter::Append(const std::byte* pages, size_t bytes) {
  file_->Write(written_, pages, bytes);
  written_ += bytes;
}

std::unique_ptr<PageFile> PageWriter::Keep() { return std::move(file_); }

}  // namespace terrace
