// Writes entries in the order of their mix as the pages of a new file, in large pieces.
//
// One thread. A file that is not kept is removed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/memory.h"
#include "tier/disk_buffer.h"
#include "tier/disk_page.h"

namespace terrace {

class PageWriter {
 public:
  PageWriter(Env& env, const std::string& path, bool direct, const PageLayout& layout,
             uint64_t number, int64_t max_entries, size_t io_bytes = kSmallIo);
  ~PageWriter();
  PageWriter(const PageWriter&) = delete;
  PageWriter& operator=(const PageWriter&) = delete;

  // `row` null: a tombstone. The row is copied.
  void Add(uint64_t mix, const std::byte* row);
  // Writes what is left. Nothing is added after it.
  void Flush();
  // Writes whole pages behind the others.
  void Append(const std::byte* pages, size_t bytes);
  // The file, which now stays.
  std::unique_ptr<PageFile> Keep();

  uint64_t number() const { return number_; }
  int64_t pages() const { return pages_; }
  int64_t entries() const { return entries_; }
  // The first mix of each page.
  Array<uint64_t>& fences() { return fences_; }

 private:
  void EndPage();
  void Write();

  Env& env_;
  const std::string path_;
  const PageLayout& layout_;
  const uint64_t number_;
  std::unique_ptr<PageFile> file_;
  Array<uint64_t> fences_;
  AlignedBuffer buffer_;              // pages not yet written
  size_t buffered_ = 0;               // bytes of it, full pages
  PageFill page_;                     // behind them
  std::vector<uint64_t> tombstones_;  // of that page: they come after its rows
  uint64_t written_ = 0;              // bytes of the file
  int64_t pages_ = 0, entries_ = 0;
};

}  // namespace terrace
