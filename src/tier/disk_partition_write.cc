// A partition's rows on their way to its log.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tier/disk_partition.h"

namespace terrace {
namespace {

constexpr size_t kAhead = 16;  // keys whose lines are fetched before their turn
// A put of so many pages goes to the log at once: its last page, partly full, wastes little.
constexpr size_t kPagesAtOnce = 8;

}  // namespace

void DiskPartition::Put(std::span<const KeyItem> items, const std::byte* rows) {
  MutexLock lock(&mu_);
  if (items.size() >= kPagesAtOnce * layout_.rows_per_page) {
    PutPages(items, rows);
    return;
  }
  const auto row = [&](size_t i) { return rows + items[i].index * layout_.row_bytes; };
  // A partition's share of a batch may be few rows, so the first ones count.
  for (size_t i = 0; i < std::min(kAhead, items.size()); ++i) Prefetch(items[i].mix);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i + kAhead < items.size()) {
      Prefetch(items[i + kAhead].mix);
      __builtin_prefetch(row(i + kAhead));
    }
    Write(items[i].mix, row(i));
  }
  CountUse();
}

// Whoever puts whole windows of rows needs no buffer: no copy, and the index is set once.
void DiskPartition::PutPages(std::span<const KeyItem> items, const std::byte* rows) {
  FlushBuffer(true);  // what is in it is older
  const size_t at_once =
      std::max<size_t>(context_.io_bytes / layout_.page_bytes, 1) * layout_.rows_per_page;
  std::vector<KeyItem> ordered;
  std::vector<PageEntry> entries;
  for (size_t begin = 0; begin < items.size(); begin += at_once) {
    const auto part = items.subspan(begin, std::min(at_once, items.size() - begin));
    ordered.assign(part.begin(), part.end());
    OrderFully(ordered);
    ordered.resize(KeepLast(ordered));
    entries.clear();
    for (const auto& [mix, index] : ordered)
      entries.push_back({mix, rows + index * layout_.row_bytes});
    AppendToLog(entries);
  }
  CountUse();
}

void DiskPartition::Delete(std::span<const KeyItem> items) {
  MutexLock lock(&mu_);
  for (const KeyItem& item : items) {
    // What is certainly absent needs no tombstone.
    if (InBase(item.mix) || !index_.Find(item.mix).none()) Write(item.mix, nullptr);
  }
  CountUse();
}

void DiskPartition::CountKey(uint64_t mix, LogPlace before, bool tombstone) {
  tombstones_ += tombstone - (!before.none() && before.tombstone());
  if (before.none() && !InBase(mix)) ++new_keys_;
}

void DiskPartition::Write(uint64_t mix, const std::byte* row) {
  if (buffer_.size() == context_.buffer_rows) FlushBuffer(false);
  const bool tombstone = row == nullptr;
  const uint32_t next = static_cast<uint32_t>(buffer_.size());
  const LogPlace before = index_.Set(mix, LogPlace::Buffer(next, tombstone));
  CountKey(mix, before, tombstone);
  if (!before.none() && before.buffered()) {
    index_.Set(mix, LogPlace::Buffer(before.number(), tombstone));
    buffer_.Replace(before.number(), row);
  } else {
    buffer_.Add(mix, row);
  }
}

void DiskPartition::OpenForAppend() {
  if (appending_) return;
  auto log = std::make_shared<LogFile>();
  log->number = context_.next_file++;
  log->file = context_.env.OpenPages(LogPath(context_.dir, log->number), PageMode::kCreate,
                                     context_.direct);
  logs_.push_back({std::move(log), next_page()});
  appending_ = true;
}

void DiskPartition::AppendToLog(std::span<const PageEntry> entries) {
  WriteLogPages(entries);
  // In the order of the index, which goes through its memory once then.
  Array<KeyItem> order(entries.size()), sorting;
  for (size_t i = 0; i < entries.size(); ++i)
    order[i] = {LogIndex::HashOf(entries[i].mix), static_cast<uint32_t>(i)};
  SortItems(&order, &sorting);
  const size_t per_page = layout_.rows_per_page;
  const uint32_t first = next_page();
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) Prefetch(LogIndex::MixOf(order[i + kAhead].mix));
    const uint32_t at = order[i].index;
    const bool tombstone = entries[at].row == nullptr;
    const LogPlace place = LogPlace::Page(first + static_cast<uint32_t>(at / per_page), tombstone);
    CountKey(entries[at].mix, index_.Set(entries[at].mix, place), tombstone);
  }
  LogFile& log = *logs_.back().log;
  const int64_t pages = layout_.PagesFor(static_cast<int64_t>(entries.size()));
  log.pages += pages;
  log.entries += static_cast<int64_t>(entries.size());
  context_.log_bytes_written += pages * static_cast<int64_t>(layout_.page_bytes);
}

void DiskPartition::WriteLogPages(std::span<const PageEntry> entries) {
  const size_t per_page = layout_.rows_per_page;
  const auto pages = static_cast<size_t>(layout_.PagesFor(static_cast<int64_t>(entries.size())));
  OpenForAppend();
  const LogFile& log = *logs_.back().log;
  if (next_page() + pages > LogPlace::kMaxNumber)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: the logs of partition {} have reached {} pages: create the store "
                            "with more partitions",
                            context_.dir, number_, LogPlace::kMaxNumber));
  MutexLock lock(&context_.flush_mu);
  AlignedBuffer& bytes = context_.flushed;
  bytes.Reserve(std::max(pages * layout_.page_bytes, context_.io_bytes));
  for (size_t page = 0; page < pages; ++page) {
    const size_t begin = page * per_page;
    WritePage(entries.subspan(begin, std::min(per_page, entries.size() - begin)), layout_,
              log.number, static_cast<uint64_t>(log.pages) + page,
              bytes.data() + page * layout_.page_bytes);
  }
  log.file->Write(static_cast<uint64_t>(log.pages) * layout_.page_bytes, bytes.data(),
                  pages * layout_.page_bytes);
}

void DiskPartition::FlushBuffer(bool everything) {
  if (buffer_.size() == 0) return;
  const std::vector<uint32_t> slots = buffer_.Choose(everything, layout_.rows_per_page);
  std::vector<PageEntry> entries;
  for (uint32_t slot : slots) entries.push_back({buffer_.mix(slot), buffer_.row(slot)});
  AppendToLog(entries);
  buffer_.Remove(slots);
  for (uint32_t slot = 0; slot < buffer_.size(); ++slot) {
    if (slot + kAhead < buffer_.size()) index_.Prefetch(buffer_.mix(slot + kAhead));
    index_.Set(buffer_.mix(slot), LogPlace::Buffer(slot, buffer_.tombstone(slot)));
  }
}

}  // namespace terrace
