// What the POSIX files and readers share; for files of src/base only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/memory.h"

namespace terrace {

// Closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Returns 0 or errno.
  int Close();

 private:
  int fd_;
};

// Throws Error(kIo): "<path>: cannot <call>: <reason of errno>; <what to do>".
[[noreturn]] void FailIo(const std::string& path, std::string_view call, int error);
[[noreturn]] void FailRead(const std::string& path, uint64_t offset, size_t size, int error);
[[noreturn]] void FailWrite(const std::string& path, uint64_t offset, size_t size, int error);
// For a read that asks for more than the file has.
[[noreturn]] void FailPastEnd(const std::string& path, uint64_t offset, size_t size,
                              uint64_t file_size);

// Reads all of `size` bytes of the file.
void ReadFully(PageFile& file, uint64_t offset, void* buffer, size_t size);

// Buffers for reads under way: `count` of `size` bytes each, aligned to pages, in one piece.
class ReadBuffers {
 public:
  ReadBuffers(size_t count, size_t size);
  std::byte* operator[](size_t i) { return memory_.data() + i * stride_; }
  size_t stride() const { return stride_; }  // `size`, rounded up to pages

 private:
  const size_t stride_;
  MappedBytes memory_;
};

void MakePosixDirectory(const std::string& path);
std::vector<std::string> ListPosixDirectory(const std::string& path);
void SyncPosixDirectory(const std::string& path);
void LinkOrCopy(const std::string& from, const std::string& to);
// Makes a new file with the same bytes, durable; nothing is left of one that could not be finished.
void CopyFileAndSync(const std::string& from, const std::string& to);
std::unique_ptr<FileLock> LockPosixFile(const std::string& path);
std::unique_ptr<FileLock> TryLockPosixDirectory(const std::string& path, LockMode mode);
std::unique_ptr<PageFile> OpenPosixPages(const std::string& path, PageMode mode, bool direct);
// Null and the reason in `error` (an errno) where the system does not permit io_uring.
std::unique_ptr<BatchReader> TryUringReader(const BatchReaderOptions& options, int* error);
std::unique_ptr<BatchReader> NewThreadReader(const BatchReaderOptions& options);
// The engine that the options, the variable TERRACE_IO and the system choose.
std::unique_ptr<BatchReader> NewPosixReader(const BatchReaderOptions& options);

}  // namespace terrace
