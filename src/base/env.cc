#include "base/env.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace terrace {
namespace {

[[noreturn]] void Fail(const std::string& path, const char* call, int error) {
  const char* hint = "";
  if (error == ENOENT) hint = "; check the path";
  if (error == EACCES) hint = "; check its permissions";
  if (error == ENOSPC) hint = "; free some space and run again";
  throw Error(ErrorCode::kIo,
              fmt::format("{}: cannot {}: {}{}", path, call, std::strerror(error), hint));
}

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
      if (errno != EINTR) Fail(path_, "read", errno);
    }
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
      if (n < 0) Fail(path_, "write", errno);
      data.remove_prefix(static_cast<size_t>(n));
    }
  }
  void Close() override {
    if (fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) Fail(path_, "sync", errno);
    const int fd = fd_;
    fd_ = -1;
    if (close(fd) != 0) Fail(path_, "close", errno);
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
    if (fd < 0) Fail(path, "open", errno);
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
    if (fd < 0) Fail(path, "create", errno);
    return std::make_unique<PosixWriter>(path, fd);
  }

  void Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) Fail(to, "rename a finished file to", errno);
  }

  void Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0) Fail(path, "remove", errno);
  }

  bool Exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }

  int64_t FileSize(const std::string& path) override {
    struct stat info;
    const int result = path == "-" ? fstat(STDIN_FILENO, &info) : stat(path.c_str(), &info);
    if (result != 0) Fail(path, "find", errno);
    return S_ISREG(info.st_mode) ? static_cast<int64_t>(info.st_size) : -1;
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
};

}  // namespace

Env& PosixEnv() {
  static PosixEnvironment env;
  return env;
}

AtomicFile::AtomicFile(Env& env, const std::string& path)
    : env_(env),
      path_(path),
      temporary_(fmt::format("{}.tmp{}", path, getpid())),
      file_(env.OpenForWrite(temporary_)) {}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  try {
    env_.Remove(temporary_);
  } catch (const Error&) {  // the failure that led here is the one to report
  }
}

void AtomicFile::Commit() {
  file_->Close();
  env_.Rename(temporary_, path_);
  committed_ = true;
}

void WriteFileAtomically(Env& env, const std::string& path, std::string_view contents) {
  AtomicFile file(env, path);
  file.Append(contents);
  file.Commit();
}

std::string ReadWholeFile(Env& env, const std::string& path) {
  std::unique_ptr<SequentialFile> file = env.OpenForRead(path);
  std::string contents;
  char buffer[1 << 16];
  while (size_t n = file->Read(buffer, sizeof(buffer))) contents.append(buffer, n);
  return contents;
}

}  // namespace terrace
