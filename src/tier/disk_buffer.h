// Memory for direct IO: starts on a page of memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/page_io.h"

namespace terrace {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Not cleared.
  explicit AlignedBuffer(size_t bytes)
      : bytes_((bytes + kPageAlign - 1) / kPageAlign * kPageAlign),
        data_(static_cast<std::byte*>(std::aligned_alloc(kPageAlign, bytes_))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }

  std::byte* data() const { return data_.get(); }
  size_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace terrace
