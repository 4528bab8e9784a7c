#include "base/posix_io.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace terrace {
namespace {

IoEngine EngineOf(const BatchReaderOptions& options) {
  const char* const wish = std::getenv("TERRACE_IO");
  if (options.engine != IoEngine::kAuto || wish == nullptr) return options.engine;
  if (std::strcmp(wish, "uring") == 0) return IoEngine::kUring;
  if (std::strcmp(wish, "threads") == 0) return IoEngine::kThreads;
  throw Error(ErrorCode::kUsage,
              fmt::format("TERRACE_IO is \"{}\"; set it to uring or threads, or unset it", wish));
}

}  // namespace

Descriptor::~Descriptor() {
  if (valid()) close(fd_);
}

int Descriptor::Close() { return close(std::exchange(fd_, -1)) == 0 ? 0 : errno; }

void FailIo(const std::string& path, std::string_view call, int error) {
  const char* hint = "";
  if (error == ENOENT) hint = "; check the path";
  if (error == EACCES) hint = "; check its permissions";
  if (error == ENOSPC) hint = "; free some space and run again";
  throw Error(ErrorCode::kIo,
              fmt::format("{}: cannot {}: {}{}", path, call, std::strerror(error), hint));
}

void FailRead(const std::string& path, uint64_t offset, size_t size, int error) {
  FailIo(path, fmt::format("read {} bytes at {}", size, offset), error);
}

void FailWrite(const std::string& path, uint64_t offset, size_t size, int error) {
  FailIo(path, fmt::format("write {} bytes at {}", size, offset), error);
}

void FailPastEnd(const std::string& path, uint64_t offset, size_t size, uint64_t file_size) {
  throw Error(ErrorCode::kIo,
              fmt::format("{}: cannot read {} bytes at {}: the file ends at {}; it was cut short, "
                          "or is not the file it should be",
                          path, size, offset, file_size));
}

void ReadFully(PageFile& file, uint64_t offset, void* buffer, size_t size) {
  size_t got = 0;
  while (got < size) {
    const ssize_t n = pread(file.descriptor(), static_cast<std::byte*>(buffer) + got, size - got,
                            static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) FailRead(file.path(), offset, size, errno);
    got += static_cast<size_t>(n);
    // Asked before reading on: a direct read may not begin where a file with a part of a page ends.
    if (got < size && (n == 0 || offset + got >= file.Size()))
      FailPastEnd(file.path(), offset, size, file.Size());
  }
}

ReadBuffers::ReadBuffers(size_t count, size_t size)
    : stride_((size + kPageAlign - 1) / kPageAlign * kPageAlign) {
  memory_.Resize(ReadBufferBytes(count * stride_));
}

std::unique_ptr<BatchReader> NewPosixReader(const BatchReaderOptions& options) {
  constexpr int kMaxDepth = 4096;
  TERRACE_CHECK(options.depth >= 1 && options.depth <= kMaxDepth && options.max_read >= 1);
  const IoEngine engine = EngineOf(options);
  if (engine == IoEngine::kThreads) return NewThreadReader(options);
  int error = 0;
  std::unique_ptr<BatchReader> reader = TryUringReader(options, &error);
  if (reader != nullptr) return reader;
  if (engine == IoEngine::kAuto) return NewThreadReader(options);
  throw Error(ErrorCode::kIo,
              fmt::format("cannot set up io_uring: {}; use the threads engine, or permit io_uring "
                          "(sysctl kernel.io_uring_disabled, container profile)",
                          std::strerror(error)));
}

}  // namespace terrace
