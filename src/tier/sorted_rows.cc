#include "tier/sorted_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace terrace {
namespace {

PageFile* FileOf(const RowSources& sources) {
  return sources.base == nullptr ? nullptr : sources.base->file();
}
uint64_t NumberOf(const RowSources& sources) {
  return sources.base == nullptr ? 0 : sources.base->number();
}

}  // namespace

int64_t RowSources::log_entries() const {
  int64_t entries = static_cast<int64_t>(buffer.size());
  for (const Log& log : logs) entries += log.entries;
  return entries;
}

int64_t RowSources::log_pages() const {
  int64_t pages = 0;
  for (const Log& log : logs) pages += log.pages;
  return pages;
}

PageStream::PageStream(PageFile* file, uint64_t number, int64_t pages, const PageLayout& layout,
                       ReadProgress progress, size_t io_bytes)
    : file_(file), number_(number), layout_(layout), progress_(std::move(progress)), end_(pages) {
  const size_t all = static_cast<size_t>(pages) * layout.page_bytes;
  if (pages > 0) buffer_ = AlignedBuffer(std::max(layout.page_bytes, std::min(all, io_bytes)));
}

const std::byte* PageStream::Next() {
  if (next_ == end_) return nullptr;
  if (next_ >= read_end_) {
    const int64_t count =
        std::min<int64_t>(static_cast<int64_t>(buffer_.size() / layout_.page_bytes), end_ - next_);
    file_->Read(static_cast<uint64_t>(next_) * layout_.page_bytes, buffer_.data(),
                static_cast<size_t>(count) * layout_.page_bytes);
    read_begin_ = next_;
    read_end_ = next_ + count;
    if (progress_) progress_(count);
  }
  const std::byte* page =
      buffer_.data() + static_cast<size_t>(next_ - read_begin_) * layout_.page_bytes;
  if (next_ + 1 < read_end_) PrefetchPage(page + layout_.page_bytes);
  CheckPage(page, layout_, number_, static_cast<uint64_t>(next_), file_->path());
  ++next_;
  return page;
}

SortedRows::SortedRows(RowSources sources, const PageLayout& layout, size_t buffer_bytes,
                       ReadProgress progress, size_t io_bytes)
    : sources_(std::move(sources)),
      layout_(layout),
      progress_(std::move(progress)),
      io_bytes_(io_bytes),
      base_(FileOf(sources_), NumberOf(sources_), sources_.base_pages(), layout_, progress_,
            io_bytes) {
  const size_t wanted = static_cast<size_t>(sources_.log_entries()) * EntryBytes(layout_.row_bytes);
  stripes_ = wanted / std::max<size_t>(buffer_bytes, 1) + 1;
  size_t parts = 0;
  for (const RowSources::Log& log : sources_.logs) parts += static_cast<size_t>(PartsOf(log));
  parts_.resize(parts);
  LoadStripe();
  has_base_ = NextBase();
}

void SortedRows::Take(uint64_t mix, const std::byte* row) {
  if (StripeOf(mix) != stripe_) return;
  const size_t order = entries_.size();
  TERRACE_CHECK(order < UINT32_MAX / 2);
  entries_.push_back({mix, static_cast<uint32_t>(2 * order + (row == nullptr))});
  rows_.resize((order + 1) * layout_.row_bytes);
  if (row != nullptr) std::memcpy(&rows_[order * layout_.row_bytes], row, layout_.row_bytes);
}

void SortedRows::ReadLog(const RowSources::Log& log, Part* parts) {
  PageStream stream(log.log->file.get(), log.log->number, log.pages, layout_, progress_, io_bytes_);
  for (int64_t begin = 0, end; begin < PartsOf(log); begin = end) {
    end = begin + 1;
    if (!Wanted(parts[begin])) continue;
    while (end < PartsOf(log) && Wanted(parts[end])) ++end;
    stream.Seek(begin * kPartPages, std::min(end * kPartPages, log.pages));
    for (int64_t number = begin * kPartPages; const std::byte* bytes = stream.Next(); ++number) {
      const PageView page(bytes, layout_);
      Part& part = parts[number / kPartPages];
      for (size_t i = 0; i < page.entries(); ++i) {
        const uint64_t mix = page.mix(i);
        part = {std::min(part.first, mix), std::max(part.last, mix)};
        Take(mix, page.is_tombstone(i) ? nullptr : page.row(i));
      }
    }
  }
}

void SortedRows::LoadStripe() {
  entries_.clear();
  rows_.clear();
  entry_ = 0;
  const size_t expected = static_cast<size_t>(sources_.log_entries()) / stripes_;
  entries_.reserve(expected + expected / 16);
  rows_.reserve((expected + expected / 16) * layout_.row_bytes);
  size_t part = 0;
  for (const RowSources::Log& log : sources_.logs) {
    ReadLog(log, parts_.data() + part);
    part += static_cast<size_t>(PartsOf(log));
  }
  for (size_t i = 0; i < sources_.buffer.size(); ++i)
    Take(sources_.buffer.mix(i), sources_.buffer.row(i));
  SortItemsFully(&entries_, &sorting_);
  entries_.resize(KeepLast(entries_));
}

bool SortedRows::NextBase() {
  while (base_page_ == nullptr || base_entry_ == PageView(base_page_, layout_).rows()) {
    base_page_ = base_.Next();
    base_entry_ = 0;
    if (base_page_ == nullptr) return false;
  }
  const uint64_t before = base_mix_;
  base_mix_ = PageView(base_page_, layout_).mix(base_entry_);
  if (has_base_ && base_mix_ <= before)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: rows are not in order; `terrace verify` lists all damage, restore "
                            "the file from a snapshot",
                            sources_.base->file()->path()));
  ++base_entry_;
  return true;
}

bool SortedRows::Next() {
  if (took_base_) has_base_ = NextBase();
  if (took_entry_) ++entry_;
  // A stripe ends when its entries are used and the base is beyond it.
  while (entry_ == entries_.size() && stripe_ + 1 < stripes_ &&
         (!has_base_ || StripeOf(base_mix_) > stripe_)) {
    ++stripe_;
    LoadStripe();
  }
  const bool has_entry = entry_ < entries_.size();
  took_entry_ = has_entry && (!has_base_ || entries_[entry_].mix <= base_mix_);
  took_base_ = has_base_ && (!has_entry || base_mix_ <= entries_[entry_].mix);
  if (took_entry_) {
    const KeyItem& entry = entries_[entry_];
    mix_ = entry.mix;
    row_ = entry.index % 2 == 1 ? nullptr : &rows_[entry.index / 2 * layout_.row_bytes];
  } else if (took_base_) {
    mix_ = base_mix_;
    row_ = PageView(base_page_, layout_).row(base_entry_ - 1);
  }
  return took_entry_ || took_base_;
}

}  // namespace terrace
