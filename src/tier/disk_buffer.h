// Memory for direct IO: starts on a page of memory.
#pragma once

#include <cstddef>

#include "base/memory.h"
#include "base/page_io.h"

namespace terrace {

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
