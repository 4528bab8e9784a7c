#include "tier/disk_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "tier/disk_buffer.h"

namespace terrace {
namespace {

// By all readers. A virtual disk's queue often has 256 places, of which a read takes three; what
// finds none is handed over later by a thread of the kernel (kblockd took 4 % of both cores with
// 256 under way). One such disk reads no faster with more than 80 under way.
constexpr int kReadsUnderWay = 80;
constexpr size_t kBatchKeyBytes = 64;      // of a lookup: the key sorted, its request, its read
constexpr size_t kHugeIoShare = 16;        // of memory, for read and write buffers
constexpr double kIndexEntryBytes = 13.4;  // 11 bytes a slot, slots 79 to 86 % full
constexpr double kLeastShare = 0.01;
constexpr size_t kLeastIndex = 64 << 10;

template <typename T>
std::string Size(T bytes) {
  return ShortBytes(static_cast<double>(bytes));
}

}  // namespace

DiskBudget::DiskBudget(const DiskOptions& options, const PageLayout& layout)
    : memory_bytes(options.memory_bytes), index_bytes(options.index_bytes) {
  const size_t page = layout.page_bytes;
  const size_t partitions = static_cast<size_t>(layout.partitions());
  reader.engine = options.io;
  // Where memory is short, first the longest reads are given up, then reads under way, then long
  // reads, then readers.
  reader.max_read = std::max<size_t>(page, 32 << 10);
  readers = std::max(options.readers, 1);
  reader.depth = std::max(kReadsUnderWay / readers, 1);
  const auto larger_than = [&](size_t bytes) {
    return static_cast<size_t>(readers) * reader.memory_bytes() > bytes;
  };
  if (larger_than(memory_bytes / 16)) reader.max_read = std::max<size_t>(page, 16 << 10);
  while (larger_than(memory_bytes / 16) && reader.depth > 32) reader.depth /= 2;
  if (larger_than(memory_bytes / 16)) {
    reader.max_read = page;
    while (larger_than(memory_bytes / 64) && reader.depth > 16) reader.depth /= 2;
    while (larger_than(memory_bytes / 64) && readers > 1) --readers;
  }
  // Rows that come again soon are replaced in the buffer and never written.
  const size_t newest = options.buffer_bytes > 0 ? options.buffer_bytes : memory_bytes / 8;
  const size_t pages =
      std::clamp<size_t>(newest / partitions / page, 1, std::max<size_t>(1, (4 << 20) / page));
  buffer_rows = pages * layout.rows_per_page;
  merge_bytes = std::clamp<size_t>(memory_bytes / 8, 256 << 10, 128 << 20);
  // A merge reads the base and a log, and writes; buffers are written.
  constexpr size_t kIoBuffers = 4;
  io_bytes = kIoBuffers * kHugeIo > memory_bytes / kHugeIoShare ? kSmallIo : kHugeIo;
  batch_keys = std::clamp<size_t>(memory_bytes / 8 / static_cast<size_t>(readers) / kBatchKeyBytes,
                                  4096, options.batch_keys > 0 ? options.batch_keys : 8 << 20);
  buffers = static_cast<size_t>(readers) * (reader.memory_bytes() + batch_keys * kBatchKeyBytes) +
            partitions * pages * page + merge_bytes + kIoBuffers * io_bytes;
  const size_t least = buffers + partitions * 400 + kLeastIndex;
  if (memory_bytes < least)
    throw Error(ErrorCode::kUsage,
                fmt::format("a disk tier with {} partitions and {}-byte pages needs at least {} of "
                            "memory, its budget is {}: raise the budget or use fewer partitions",
                            partitions, page, Size(least), Size(memory_bytes)));
}

int64_t DiskBudget::IndexLimit(int64_t fence_bytes, int64_t filter_bytes, int partitions) const {
  if (index_bytes > 0) return static_cast<int64_t>(index_bytes);
  // A merge builds the fences and the filter of one partition anew.
  const int64_t merging = (fence_bytes + filter_bytes) / partitions * 3 / 2;
  return static_cast<int64_t>(memory_bytes) - static_cast<int64_t>(buffers) - fence_bytes -
         filter_bytes - merging;
}

double DiskBudget::FilterBits(int64_t rows, double absent) const {
  const double share = absent > 0.1 ? 1.0 / 2 : 1.0 / 7;
  const double bits = 8 * share * static_cast<double>(memory_bytes - buffers) /
                      static_cast<double>(std::max<int64_t>(rows, 1));
  return bits < 5 ? 0 : std::min(bits, 10.0);
}

void DiskBudget::CheckRows(const std::string& dir, int64_t rows, int64_t fence_bytes,
                           int64_t filter_bytes, const PageLayout& layout) const {
  const auto index = [&](double share) {
    return static_cast<int64_t>(share * kIndexEntryBytes * static_cast<double>(rows));
  };
  if (IndexLimit(fence_bytes, filter_bytes, layout.partitions()) >= index(kLeastShare)) return;
  const int64_t other = static_cast<int64_t>(buffers) + fence_bytes + filter_bytes;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{}: a memory budget of {} is too small for {} rows of {} bytes: buffers take "
                  "{}, fences and filters {}, and the index of the logs {} at the least; raise the "
                  "budget to {}, or to {} to write less in merges",
                  dir, Size(memory_bytes), rows, layout.row_bytes, Size(buffers),
                  Size(fence_bytes + filter_bytes), Size(index(kLeastShare)),
                  Size(other + index(kLeastShare) * 5 / 4), Size(other + index(0.2))));
}

void DiskBudget::FailIndex(const std::string& dir, int64_t bytes, int64_t limit) const {
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: the index of the logs takes {}, a memory budget of {} leaves {} for "
                          "it: raise the budget to {}",
                          dir, Size(bytes), Size(memory_bytes), Size(std::max<int64_t>(limit, 0)),
                          Size(static_cast<int64_t>(memory_bytes) + bytes - limit)));
}

}  // namespace terrace
