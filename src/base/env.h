// Every file call of the project goes through an Env, so that tests can make them fail.
//
// Functions throw Error(kIo) that names the path, the call and the system's reason. Env objects are
// safe from several threads; a file object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/page_io.h"

namespace terrace {

// Bytes in order, from a file, a pipe or standard input.
class SequentialFile {
 public:
  virtual ~SequentialFile() = default;
  // Reads up to `size` bytes; 0 only at the end.
  virtual size_t Read(void* buffer, size_t size) = 0;
  // Passes over the next `size` bytes; where fewer are left, over those. A regular file is not read
  // for it.
  virtual void Skip(uint64_t size);
};

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void Append(std::string_view data) = 0;
  // Makes the bytes durable and closes. Without it the file is left incomplete.
  virtual void Close() = 0;
};

// Free again when the object or the process ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class LockMode {
  kShared,  // by any number, while nobody has it alone
  kAlone,
};

// What a path leads to. Two paths are the same file if device and inode are equal.
struct FileStatus {
  uint64_t device = 0, inode = 0;
  int64_t links = 0;  // names of the file
  int64_t bytes = 0;
};

enum class PageMode {
  kRead,    // an existing file
  kCreate,  // a new file, for reading and writing; an existing one is emptied
};

class Env {
 public:
  virtual ~Env() = default;
  // "-" is standard input.
  virtual std::unique_ptr<SequentialFile> OpenForRead(const std::string& path) = 0;
  // Created or emptied.
  virtual std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) = 0;
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  virtual void Remove(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual int64_t FileSize(const std::string& path) = 0;  // -1 where unknown (a pipe)
  virtual FileStatus Status(const std::string& path) = 0;
  // Paths that match a shell pattern, sorted; a path without wildcards is returned as it is.
  virtual std::vector<std::string> Glob(const std::string& pattern) = 0;

  // `direct` asks for IO past the page cache; where the file system has none, it is buffered.
  virtual std::unique_ptr<PageFile> OpenPages(const std::string& path, PageMode mode,
                                              bool direct) = 0;
  virtual std::unique_ptr<BatchReader> NewBatchReader(const BatchReaderOptions& options) = 0;
  // With its parents; one that exists is fine.
  virtual void MakeDirectory(const std::string& path) = 0;
  // An empty one.
  virtual void RemoveDirectory(const std::string& path) = 0;
  // A link to a directory is none.
  virtual bool IsDirectory(const std::string& path) = 0;
  // Names in the directory, sorted, without "." and "..".
  virtual std::vector<std::string> List(const std::string& path) = 0;
  // Makes created, renamed and removed names in the directory durable.
  virtual void SyncDirectory(const std::string& path) = 0;
  // A second name for the same file; copies and syncs it where the file system has no hard links.
  virtual void Link(const std::string& from, const std::string& to) = 0;
  // Throws Error(kIo) when another process, or another object of this one, holds it.
  virtual std::unique_ptr<FileLock> Lock(const std::string& path) = 0;
  // Locks the directory itself: nothing is written, and the lock follows it to a new name. Null if
  // others hold it in a way that excludes `mode`. Where there are no locks (some network file
  // systems) the object holds nothing.
  [[nodiscard]] virtual std::unique_ptr<FileLock> TryLockDirectory(const std::string& path,
                                                                   LockMode mode) = 0;
};

// The operating system's files.
Env& PosixEnv();

// A file that appears under its name whole or not at all: written beside it, renamed by Commit.
class AtomicFile {
 public:
  AtomicFile(Env& env, const std::string& path);
  ~AtomicFile();  // without Commit: nothing is left
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Append(std::string_view data) { file_->Append(data); }
  void Commit();

 private:
  Env& env_;
  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<WritableFile> file_;
  bool committed_ = false;
};

// Writes `contents` so that `path` holds either its old or its new contents, never a part.
void WriteFileAtomically(Env& env, const std::string& path, std::string_view contents);
std::string ReadWholeFile(Env& env, const std::string& path);
// The directory and all in it; links are not followed.
void RemoveTree(Env& env, const std::string& path);

}  // namespace terrace
