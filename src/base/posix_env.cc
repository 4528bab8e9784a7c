#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/env.h"
#include "base/error.h"
#include "base/posix_io.h"

namespace terrace {
namespace {

class PosixReader : public SequentialFile {
 public:
  PosixReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixReader() override {
    if (fd_ != STDIN_FILENO) close(fd_);
  }
  size_t Read(void* buffer, size_t size) override {
    for (;;) {
      const ssize_t n = read(fd_, buffer, size);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR) FailIo(path_, "read", errno);
    }
  }
  void Skip(uint64_t size) override {
    struct stat info;
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) return SequentialFile::Skip(size);
    const off_t at = lseek(fd_, 0, SEEK_CUR);
    if (at < 0) FailIo(path_, "seek in", errno);
    const uint64_t left = at < info.st_size ? static_cast<uint64_t>(info.st_size - at) : 0;
    if (lseek(fd_, static_cast<off_t>(std::min(size, left)), SEEK_CUR) < 0)
      FailIo(path_, "seek in", errno);
  }

 private:
  const std::string path_;
  const int fd_;
};

class PosixWriter : public WritableFile {
 public:
  PosixWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixWriter() override {
    if (fd_ >= 0) close(fd_);
  }
  void Append(std::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) FailIo(path_, "write", errno);
      data.remove_prefix(static_cast<size_t>(n));
    }
  }
  void Close() override {
    if (fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) FailIo(path_, "sync", errno);
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0) FailIo(path_, "close", errno);
  }

 private:
  const std::string path_;
  int fd_;
};

class PosixEnvironment : public Env {
 public:
  std::unique_ptr<SequentialFile> OpenForRead(const std::string& path) override {
    if (path == "-") return std::make_unique<PosixReader>("standard input", STDIN_FILENO);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) FailIo(path, "open", errno);
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
      close(fd);
      throw Error(ErrorCode::kIo,
                  path + ": is a directory; name a file or a pattern such as " + path + "/*.tsv");
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return std::make_unique<PosixReader>(path, fd);
  }

  std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) override {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) FailIo(path, "create", errno);
    return std::make_unique<PosixWriter>(path, fd);
  }

  void Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) FailIo(to, "rename a finished file to", errno);
  }

  void Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0) FailIo(path, "remove", errno);
  }

  bool Exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }

  int64_t FileSize(const std::string& path) override {
    struct stat info;
    const int result = path == "-" ? fstat(STDIN_FILENO, &info) : stat(path.c_str(), &info);
    if (result != 0) FailIo(path, "find", errno);
    return S_ISREG(info.st_mode) ? static_cast<int64_t>(info.st_size) : -1;
  }

  FileStatus Status(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) FailIo(path, "find", errno);
    return {info.st_dev, info.st_ino, static_cast<int64_t>(info.st_nlink),
            static_cast<int64_t>(info.st_size)};
  }

  std::vector<std::string> Glob(const std::string& pattern) override {
    if (pattern.find_first_of("*?[") == std::string::npos || Exists(pattern)) return {pattern};
    glob_t found;
    std::vector<std::string> paths;
    const int result = glob(pattern.c_str(), 0, nullptr, &found);
    if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (result != 0 && result != GLOB_NOMATCH)
      throw Error(ErrorCode::kIo, pattern + ": cannot list the files of this pattern");
    return paths;
  }

  std::unique_ptr<PageFile> OpenPages(const std::string& path, PageMode mode,
                                      bool direct) override {
    return OpenPosixPages(path, mode, direct);
  }
  std::unique_ptr<BatchReader> NewBatchReader(const BatchReaderOptions& options) override {
    return NewPosixReader(options);
  }
  void MakeDirectory(const std::string& path) override { MakePosixDirectory(path); }
  void RemoveDirectory(const std::string& path) override {
    if (rmdir(path.c_str()) != 0) FailIo(path, "remove the directory", errno);
  }
  bool IsDirectory(const std::string& path) override {
    struct stat info;
    return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  }
  std::vector<std::string> List(const std::string& path) override {
    return ListPosixDirectory(path);
  }
  void SyncDirectory(const std::string& path) override { SyncPosixDirectory(path); }
  void Link(const std::string& from, const std::string& to) override { LinkOrCopy(from, to); }
  std::unique_ptr<FileLock> Lock(const std::string& path) override { return LockPosixFile(path); }
  std::unique_ptr<FileLock> TryLockDirectory(const std::string& path, LockMode mode) override {
    return TryLockPosixDirectory(path, mode);
  }
};

}  // namespace

Env& PosixEnv() {
  static PosixEnvironment env;
  return env;
}

}  // namespace terrace
