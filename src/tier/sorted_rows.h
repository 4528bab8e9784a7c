// All rows of one partition in the order of their mix: its base and its logs read as one.
//
// For merges and scans. Reads every file once from start to end; if the log entries do not fit in
// the buffer, the logs once for each stripe of mixes that does, but for parts that have none of
// them, as there are many where rows were put in the order of mixes. One thread; throws what
// reading throws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tier/base_file.h"
#include "tier/disk_buffer.h"
#include "tier/disk_page.h"
#include "tier/key_sort.h"
#include "tier/log_buffer.h"

namespace terrace {

// A log of a partition: pages in the order they were written, each sorted in itself.
struct LogFile {
  uint64_t number = 0;
  std::unique_ptr<PageFile> file;
  // Guarded by the partition's lock.
  int64_t pages = 0, entries = 0;
  int64_t synced_pages = 0;
};

struct RowSources {
  struct Log {
    std::shared_ptr<LogFile> log;
    int64_t pages = 0, entries = 0;
  };
  std::shared_ptr<BaseFile> base;  // or null
  std::vector<Log> logs;           // oldest first
  LogBuffer buffer;                // newer than the logs

  int64_t log_entries() const;
  int64_t log_pages() const;
  int64_t base_pages() const { return base == nullptr ? 0 : base->pages(); }
};

// Called with the pages just read, before they are used; may throw to give up.
using ReadProgress = std::function<void(int64_t pages)>;

// The pages of one file in order, checked.
class PageStream {
 public:
  PageStream(PageFile* file, uint64_t number, int64_t pages, const PageLayout& layout,
             ReadProgress progress, size_t io_bytes = kSmallIo);
  // Null at the end.
  const std::byte* Next();
  // Goes on with page `first`, which is not behind us, up to `end`.
  void Seek(int64_t first, int64_t end) {
    next_ = first;
    end_ = end;
  }

 private:
  PageFile* const file_;
  const uint64_t number_;
  const PageLayout& layout_;
  const ReadProgress progress_;
  AlignedBuffer buffer_;
  int64_t end_;
  int64_t next_ = 0;                       // page
  int64_t read_begin_ = 0, read_end_ = 0;  // pages in the buffer
};

class SortedRows {
 public:
  SortedRows(RowSources sources, const PageLayout& layout, size_t buffer_bytes,
             ReadProgress progress, size_t io_bytes = kSmallIo);

  // Steps to the next entry; false at the end.
  bool Next();
  uint64_t mix() const { return mix_; }
  // Null: deleted.
  const std::byte* row() const { return row_; }

  static constexpr size_t EntryBytes(size_t row_bytes) { return row_bytes + 2 * sizeof(KeyItem); }

 private:
  uint64_t StripeOf(uint64_t mix) const {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(layout_.WithinPartition(mix)) * stripes_) >> 64);
  }
  void LoadStripe();
  // Mixes on kPartPages pages of a log, or on fewer at its end.
  struct Part {
    uint64_t first = ~uint64_t{0}, last = 0;
  };
  static constexpr int64_t kPartPages = 16;
  static int64_t PartsOf(const RowSources::Log& log) {
    return (log.pages + kPartPages - 1) / kPartPages;
  }
  // The first stripe reads all and notes what is where.
  bool Wanted(const Part& part) const {
    return stripe_ == 0 || (StripeOf(part.first) <= stripe_ && StripeOf(part.last) >= stripe_);
  }
  void ReadLog(const RowSources::Log& log, Part* parts);
  void Take(uint64_t mix, const std::byte* row);
  bool NextBase();

  const RowSources sources_;
  const PageLayout layout_;
  const ReadProgress progress_;
  const size_t io_bytes_;
  uint64_t stripes_ = 1;
  uint64_t stripe_ = 0;
  std::vector<Part> parts_;  // of all logs
  // Of the stripe: sorted, the newest of each mix. Its index is twice the place of its row, and odd
  // for a tombstone.
  Array<KeyItem> entries_, sorting_;
  Array<std::byte> rows_;
  size_t entry_ = 0;

  PageStream base_;
  const std::byte* base_page_ = nullptr;
  size_t base_entry_ = 0;
  bool has_base_ = false;
  uint64_t base_mix_ = 0;

  bool took_base_ = false, took_entry_ = false;  // what the last step gave: now behind us

  uint64_t mix_ = 0;
  const std::byte* row_ = nullptr;
};

}  // namespace terrace
