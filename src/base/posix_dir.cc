#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/posix_io.h"

namespace terrace {
namespace {

// flock belongs to the open file, so a second object of the same process is refused too.
class PosixLock : public FileLock {
 public:
  explicit PosixLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  const Descriptor fd_;
};

// Returns an errno value or 0.
int CopyBytes(int from, int to) {
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    const ssize_t n = read(from, buffer.data(), buffer.size());
    if (n == 0) return 0;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    for (ssize_t put = 0; put < n;) {
      const ssize_t m = write(to, buffer.data() + put, static_cast<size_t>(n - put));
      if (m < 0 && errno != EINTR) return errno;
      put += std::max<ssize_t>(m, 0);
    }
  }
}

}  // namespace

void MakePosixDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) FailIo(path, "create the directory", error.value());
}

std::vector<std::string> ListPosixDirectory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(path, error);
  while (!error && at != std::filesystem::directory_iterator()) {
    names.push_back(at->path().filename());
    at.increment(error);
  }
  if (error) FailIo(path, "list the directory", error.value());
  std::sort(names.begin(), names.end());
  return names;
}

void SyncPosixDirectory(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) FailIo(path, "open the directory", errno);
  // Some file systems keep names durable by themselves and refuse the call.
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    FailIo(path, "sync the directory", errno);
}

void LinkOrCopy(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return;
  if (errno != EXDEV && errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK)
    FailIo(to, "link " + from + " to", errno);
  CopyFileAndSync(from, to);
}

void CopyFileAndSync(const std::string& from, const std::string& to) {
  const Descriptor in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) FailIo(from, "open", errno);
  Descriptor out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!out.valid()) FailIo(to, "create", errno);
  int error = CopyBytes(in.get(), out.get());
  if (error == 0 && fdatasync(out.get()) != 0 && errno != EINVAL) error = errno;
  const int closed = out.Close();
  if (error == 0) error = closed;
  if (error == 0) return;
  unlink(to.c_str());
  FailIo(to, "copy " + from + " to", error);
}

std::unique_ptr<FileLock> LockPosixFile(const std::string& path) {
  Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) FailIo(path, "open", errno);
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      throw Error(ErrorCode::kIo, path +
                                      ": cannot lock: another process has it open; wait until "
                                      "that one ends, or use another directory");
    if (errno != EINTR) FailIo(path, "lock", errno);
  }
  return std::make_unique<PosixLock>(std::move(fd));
}

std::unique_ptr<FileLock> TryLockPosixDirectory(const std::string& path, LockMode mode) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) FailIo(path, "open the directory", errno);
  while (flock(fd.get(), (mode == LockMode::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return nullptr;
    if (errno != EINTR) break;
  }
  return std::make_unique<PosixLock>(std::move(fd));
}

}  // namespace terrace
