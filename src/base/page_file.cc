#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/page_io.h"
#include "base/posix_io.h"

namespace terrace {
namespace {

class PosixPageFile : public PageFile {
 public:
  PosixPageFile(std::string path, Descriptor fd, bool direct)
      : path_(std::move(path)), fd_(std::move(fd)), direct_(direct) {}

  void Read(uint64_t offset, void* buffer, size_t size) override {
    CheckAligned(offset, buffer, size);
    ReadFully(*this, offset, buffer, size);
  }

  void Write(uint64_t offset, const void* data, size_t size) override {
    CheckAligned(offset, data, size);
    size_t put = 0;
    while (put < size) {
      const ssize_t n = pwrite(fd_.get(), static_cast<const std::byte*>(data) + put, size - put,
                               static_cast<off_t>(offset + put));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) FailWrite(path_, offset, size, n < 0 ? errno : EIO);
      put += static_cast<size_t>(n);
    }
  }

  void Sync() override {
    while (fdatasync(fd_.get()) != 0)
      if (errno != EINTR) FailIo(path_, "sync", errno);
  }

  void Truncate(uint64_t size) override {
    while (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0)
      if (errno != EINTR) FailIo(path_, "truncate", errno);
  }

  uint64_t Size() override {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) FailIo(path_, "find the size of", errno);
    return static_cast<uint64_t>(info.st_size);
  }

  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }
  int descriptor() const override { return fd_.get(); }

 private:
  void CheckAligned(uint64_t offset, const void* data, size_t size) const {
    TERRACE_CHECK(!direct_ ||
                  (offset | size | reinterpret_cast<uintptr_t>(data)) % kPageAlign == 0);
  }

  const std::string path_;
  const Descriptor fd_;
  const bool direct_;
};

int Open(const std::string& path, int flags) {
  for (;;) {
    const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

}  // namespace

std::unique_ptr<PageFile> OpenPosixPages(const std::string& path, PageMode mode, bool direct) {
  const int flags = mode == PageMode::kRead ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC;
  int fd = Open(path, flags | (direct ? O_DIRECT : 0));
  if (fd < 0 && direct && errno == EINVAL) {
    direct = false;
    fd = Open(path, flags);
  }
  if (fd < 0) FailIo(path, mode == PageMode::kRead ? "open" : "create", errno);
  return std::make_unique<PosixPageFile>(path, Descriptor(fd), direct);
}

}  // namespace terrace
