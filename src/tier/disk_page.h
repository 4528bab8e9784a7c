// Pages of the disk tier: how rows lie on them, and their checksums. docs/disk_format.md.
//
// A page holds up to rows_per_page entries: a mix (of the key) each, and a row for those that are
// not tombstones. Entries are sorted by mix, rows first, then tombstones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/hash.h"

namespace terrace {

// Keys are stored mixed: sorted by mix they are spread evenly, whatever the keys are.
constexpr uint64_t MixOfKey(uint64_t key) { return Mix64(key); }
constexpr uint64_t KeyOfMix(uint64_t mix) { return Unmix64(mix); }

struct PageLayout {
  static constexpr size_t kHeaderBytes = 16;

  size_t row_bytes = 0;
  size_t page_bytes = 0;
  size_t rows_per_page = 0;
  size_t rows_offset = 0;  // of the first row in a page
  int partition_bits = 0;

  // `page_bytes` 0: the smallest page from 4 KiB on that wastes at most an eighth.
  PageLayout() = default;
  PageLayout(size_t row_bytes, size_t page_bytes, int partitions);

  int partitions() const { return 1 << partition_bits; }
  int PartitionOf(uint64_t mix) const {
    return partition_bits == 0 ? 0 : static_cast<int>(mix >> (64 - partition_bits));
  }
  // The mix without the partition's bits, at the top: orders the rows of one partition.
  uint64_t WithinPartition(uint64_t mix) const { return mix << partition_bits; }
  int64_t PagesFor(int64_t rows) const {
    return (rows + static_cast<int64_t>(rows_per_page) - 1) / static_cast<int64_t>(rows_per_page);
  }
};

// A page in memory. Nothing is checked here: see CheckPage.
class PageView {
 public:
  PageView(const std::byte* page, const PageLayout& layout) : page_(page), layout_(&layout) {}

  size_t rows() const { return Load<uint16_t>(8); }
  size_t tombstones() const { return Load<uint16_t>(10); }
  size_t entries() const { return rows() + tombstones(); }
  bool is_tombstone(size_t entry) const { return entry >= rows(); }
  uint64_t mix(size_t entry) const { return Load<uint64_t>(PageLayout::kHeaderBytes + 8 * entry); }
  const std::byte* row(size_t entry) const {
    return page_ + layout_->rows_offset + entry * layout_->row_bytes;
  }
  // The row of `mix`, or null.
  const std::byte* Find(uint64_t mix) const;

 private:
  template <typename T>
  T Load(size_t offset) const {
    T value;
    std::memcpy(&value, page_ + offset, sizeof(value));
    return value;
  }

  const std::byte* page_;
  const PageLayout* layout_;
};

// Fills a page: rows in the order of their mixes, then tombstones in theirs, at most rows_per_page
// of both; then Finish.
class PageFill {
 public:
  PageFill(std::byte* bytes, const PageLayout& layout) : bytes_(bytes), layout_(&layout) {}

  void AddRow(uint64_t mix, const std::byte* row) {
    std::memcpy(bytes_ + layout_->rows_offset + counts_[0] * layout_->row_bytes, row,
                layout_->row_bytes);
    AddMix(mix, 0);
  }
  void AddTombstone(uint64_t mix) { AddMix(mix, 1); }
  size_t entries() const { return size_t{counts_[0]} + counts_[1]; }
  // `number` is the file's, `page` the place in it: both are in the checksum, so that a page that
  // strays is found out.
  void Finish(uint64_t number, uint64_t page);

 private:
  void AddMix(uint64_t mix, int kind) {
    std::memcpy(bytes_ + PageLayout::kHeaderBytes + sizeof(mix) * entries(), &mix, sizeof(mix));
    ++counts_[kind];
  }

  std::byte* bytes_;
  const PageLayout* layout_;
  uint16_t counts_[2] = {0, 0};  // rows, tombstones
};

// An entry to be written; a tombstone has no row.
struct PageEntry {
  uint64_t mix;
  const std::byte* row;
};
// Writes a page of entries in the order of their mix, at most rows_per_page.
void WritePage(std::span<const PageEntry> entries, const PageLayout& layout, uint64_t number,
               uint64_t page, std::byte* bytes);

// Empty if the page's checksum and counts are right, else what is wrong.
std::string PageProblem(const std::byte* bytes, const PageLayout& layout, uint64_t number,
                        uint64_t page);
// Throws Error(kCorruption) that names the file and the page.
void CheckPage(const std::byte* bytes, const PageLayout& layout, uint64_t number, uint64_t page,
               const std::string& path);

}  // namespace terrace
