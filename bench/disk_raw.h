// The limit of a multi-get: reads of the same pages with nothing around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

// A file as large as so many rows with their keys, read in pages of 4 KiB past the page cache by
// io_uring: sorted, near ones as one, many under way, into registered buffers. For one thread.
// Failures are Error(kIo).
class RawReader {
 public:
  RawReader(const std::string& dir, uint64_t rows, size_t row_bytes);
  ~RawReader();
  RawReader(const RawReader&) = delete;
  RawReader& operator=(const RawReader&) = delete;

  // The best rate over ways to join reads, as `"name": value` pairs of JSON.
  std::string Measure(size_t batch, double seconds);

 private:
  const std::string path_;
  uint64_t pages_;
  int fd_ = -1;
};

}  // namespace terrace
