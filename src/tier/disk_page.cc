#include "tier/disk_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kSmallestPage = 4096, kLargestPage = 64 << 10;

size_t RowsPerPage(size_t row_bytes, size_t page_bytes) {
  return (page_bytes - PageLayout::kHeaderBytes) / (sizeof(uint64_t) + row_bytes);
}

size_t PageBytesFor(size_t row_bytes) {
  for (size_t page = kSmallestPage; page < kLargestPage; page *= 2) {
    const size_t used = RowsPerPage(row_bytes, page) * (sizeof(uint64_t) + row_bytes);
    if (page - used <= page / 8) return page;
  }
  return kLargestPage;
}

uint64_t Checksum(const std::byte* bytes, const PageLayout& layout, uint64_t number,
                  uint64_t page) {
  return HashBytes(bytes + 8, layout.page_bytes - 8, Mix64(number) + page);
}

}  // namespace

PageLayout::PageLayout(size_t row, size_t page, int partitions)
    : row_bytes(row), page_bytes(page == 0 ? PageBytesFor(row) : page) {
  rows_per_page = RowsPerPage(row_bytes, page_bytes);
  rows_offset = kHeaderBytes + sizeof(uint64_t) * rows_per_page;
  partition_bits = std::countr_zero(static_cast<unsigned>(partitions));
  TERRACE_CHECK(rows_per_page > 0 && std::has_single_bit(static_cast<unsigned>(partitions)));
}

const std::byte* PageView::Find(uint64_t mix_wanted) const {
  // Halving without a branch: which half is not predictable.
  const std::byte* mixes = page_ + PageLayout::kHeaderBytes;
  size_t first = 0, count = rows();
  while (count > 1) {
    const size_t half = count / 2;
    uint64_t middle;
    std::memcpy(&middle, mixes + 8 * (first + half), sizeof(middle));
    first = middle <= mix_wanted ? first + half : first;
    count -= half;
  }
  return count == 1 && mix(first) == mix_wanted ? row(first) : nullptr;
}

void WritePage(std::span<const PageEntry> entries, const PageLayout& layout, uint64_t number,
               uint64_t page, std::byte* bytes) {
  PageFill fill(bytes, layout);
  for (const PageEntry& entry : entries)
    if (entry.row != nullptr) fill.AddRow(entry.mix, entry.row);
  for (const PageEntry& entry : entries)
    if (entry.row == nullptr) fill.AddTombstone(entry.mix);
  fill.Finish(number, page);
}

void PageFill::Finish(uint64_t number, uint64_t page) {
  // What is not used is zero.
  std::memset(bytes_, 0, PageLayout::kHeaderBytes);
  std::byte* const mixes_end =
      bytes_ + PageLayout::kHeaderBytes + sizeof(uint64_t) * (counts_[0] + counts_[1]);
  std::fill(mixes_end, bytes_ + layout_->rows_offset, std::byte{0});
  std::fill(bytes_ + layout_->rows_offset + counts_[0] * layout_->row_bytes,
            bytes_ + layout_->page_bytes, std::byte{0});
  std::memcpy(bytes_ + 8, counts_, sizeof(counts_));
  const uint64_t checksum = Checksum(bytes_, *layout_, number, page);
  std::memcpy(bytes_, &checksum, sizeof(checksum));
}

std::string PageProblem(const std::byte* bytes, const PageLayout& layout, uint64_t number,
                        uint64_t page) {
  uint64_t stored;
  std::memcpy(&stored, bytes, sizeof(stored));
  const uint64_t expected = Checksum(bytes, layout, number, page);
  if (stored != expected)
    return fmt::format("its checksum is {:016x}, its contents have {:016x}", stored, expected);
  const size_t entries = PageView(bytes, layout).entries();
  if (entries > layout.rows_per_page)
    return fmt::format("it counts {} entries, but holds at most {}", entries, layout.rows_per_page);
  return {};
}

void CheckPage(const std::byte* bytes, const PageLayout& layout, uint64_t number, uint64_t page,
               const std::string& path) {
  const std::string problem = PageProblem(bytes, layout, number, page);
  if (problem.empty()) [[likely]]
    return;
  throw Error(ErrorCode::kCorruption,
              fmt::format("{}: page {} is damaged: {}; `terrace verify` lists all damage, restore "
                          "the file from a snapshot",
                          path, page, problem));
}

}  // namespace terrace
