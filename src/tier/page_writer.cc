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
      buffer_(std::max(io_bytes, layout.page_bytes)),
      page_(buffer_.data(), layout) {
  if (layout.PagesFor(max_entries) > UINT32_MAX)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: {} rows are more than a file of {} pages holds: create the store "
                            "with more partitions",
                            path, max_entries, UINT32_MAX));
  fences_.reserve(static_cast<size_t>(layout.PagesFor(max_entries)));
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
  if (page_.entries() + tombstones_.size() == 0) fences_.push_back(mix);
  if (row != nullptr)
    page_.AddRow(mix, row);
  else
    tombstones_.push_back(mix);
  ++entries_;
  if (page_.entries() + tombstones_.size() == layout_.rows_per_page) EndPage();
}

void PageWriter::EndPage() {
  for (uint64_t mix : tombstones_) page_.AddTombstone(mix);
  tombstones_.clear();
  page_.Finish(number_, static_cast<uint64_t>(pages_));
  ++pages_;
  buffered_ += layout_.page_bytes;
  if (buffered_ + layout_.page_bytes > buffer_.size()) Write();
  page_ = PageFill(buffer_.data() + buffered_, layout_);
}

void PageWriter::Write() {
  file_->Write(written_, buffer_.data(), buffered_);
  written_ += buffered_;
  buffered_ = 0;
}

void PageWriter::Flush() {
  if (page_.entries() + tombstones_.size() > 0) EndPage();
  if (buffered_ > 0) Write();
  fences_.shrink_to_fit();
}

void PageWriter::Append(const std::byte* pages, size_t bytes) {
  file_->Write(written_, pages, bytes);
  written_ += bytes;
}

std::unique_ptr<PageFile> PageWriter::Keep() { return std::move(file_); }

}  // namespace terrace
