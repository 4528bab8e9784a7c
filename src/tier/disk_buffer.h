// Memory for direct IO: starts on a page of memory.
#pragma once

#include <cstddef>

#include "base/memory.h"
#include "base/page_io.h"

namespace terrace {

// Bytes of one read or write in order. A request takes a place in the device's queue for each piece
// of memory that it is scattered over, and a virtual disk's has 256 of them: 1 MiB on small pages
// needs them all, and waits until every other read has ended. A huge page is one piece.
constexpr size_t kSmallIo = 768 << 10;
constexpr size_t kHugeIo = 2 << 20;

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Not cleared.
  explicit AlignedBuffer(size_t bytes) { Reserve(bytes); }

  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }
  // Makes size() at least `bytes`; what it held may be lost.
  void Reserve(size_t bytes) {
    if (bytes > size()) memory_.Resize((bytes + kPageAlign - 1) / kPageAlign * kPageAlign);
  }

 private:
  MappedBytes memory_;
};

}  // namespace terrace
