// A partition's base: an immutable file of full pages sorted by mix, with its fences and filter.
//
// The file is data pages, then the fences (the first mix of each page) and the filter, then one
// page that describes it all. BaseWriter writes one; BaseFile holds one open. A BaseFile is
// immutable: any thread may read.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/env.h"
#include "tier/disk_page.h"
#include "tier/key_filter.h"
#include "tier/page_writer.h"

namespace terrace {

struct BaseHeader {
  uint64_t number = 0;
  int64_t pages = 0, rows = 0;
  int64_t filter_words = 0;
};

class BaseFile {
 public:
  // Throws Error(kCorruption) if the file is not what the header and the layout say, `header` being
  // from the manifest (filter_words is found in the file). Without `with_filter` it is not loaded.
  // `fences`, if not null, gets all fences whole.
  static std::shared_ptr<BaseFile> Open(Env& env, const std::string& path, bool direct,
                                        const PageLayout& layout, const BaseHeader& header,
                                        bool with_filter, Array<uint64_t>* fences = nullptr);

  PageFile* file() const { return file_.get(); }
  uint64_t number() const { return header_.number; }
  int64_t pages() const { return header_.pages; }
  int64_t rows() const { return header_.rows; }
  const KeyFilter& filter() const { return filter_; }
  uint64_t first_mix() const { return first_mix_; }
  int64_t fence_bytes() const {
    return static_cast<int64_t>(half_fences_.size() * sizeof(uint32_t) +
                                fences_.size() * sizeof(uint64_t));
  }
  int64_t file_bytes() const { return file_bytes_; }

  // The pages that may hold `mix`, looked for near page `hint` first: a sorted batch walks along.
  // Nearly always one; two where the mix and a fence differ in what memory does not have of it.
  struct Pages {
    int64_t first, last;
  };
  Pages PagesOf(uint64_t mix, int64_t hint) const;

  // Not durable until synced; a second call does nothing. For one thread at a time.
  void Sync();
  bool synced() const { return synced_; }

 private:
  friend class BaseWriter;
  BaseFile() = default;
  void SetFences(Array<uint64_t> fences, const PageLayout& layout);
  uint32_t HalfOf(uint64_t mix) const {
    return static_cast<uint32_t>((mix << partition_bits_) >> 32);
  }

  BaseHeader header_;
  std::unique_ptr<PageFile> file_;
  // The top 32 bits of each fence behind the partition's, if they differ for all pages; else the
  // whole ones.
  Array<uint32_t> half_fences_;
  Array<uint64_t> fences_;
  int partition_bits_ = 0;
  uint64_t first_mix_ = 0;
  KeyFilter filter_;
  int64_t file_bytes_ = 0;
  bool synced_ = false;
};

// Writes a base from rows in the order of their mix. What is not finished is removed.
class BaseWriter {
 public:
  BaseWriter(Env& env, const std::string& path, bool direct, const PageLayout& layout,
             uint64_t number, int64_t max_rows, double filter_bits, size_t io_bytes = kSmallIo)
      : layout_(layout),
        pages_(env, path, direct, layout, number, max_rows, io_bytes),
        filter_(static_cast<size_t>(max_rows), filter_bits) {}

  void Add(uint64_t mix, const std::byte* row) {
    pages_.Add(mix, row);
    filter_.Add(mix);
  }
  int64_t pages() const { return pages_.pages(); }
  // The finished base, or null if there were no rows.
  std::shared_ptr<BaseFile> Finish();

 private:
  const PageLayout& layout_;
  PageWriter pages_;
  KeyFilter filter_;
};

}  // namespace terrace
