// For tests of faults: what is below one directory goes to another Env.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"

namespace terrace {

// Links and renames belong to their new name. Pages are read in batches outside of the directory
// only.
class RoutedEnv : public Env {
 public:
  RoutedEnv(Env& outside, Env& inside, std::string dir)
      : outside_(outside), inside_(inside), dir_(std::move(dir)) {}

  std::unique_ptr<SequentialFile> OpenForRead(const std::string& path) override {
    return At(path).OpenForRead(path);
  }
  std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) override {
    return At(path).OpenForWrite(path);
  }
  void Rename(const std::string& from, const std::string& to) override { At(to).Rename(from, to); }
  void Remove(const std::string& path) override { At(path).Remove(path); }
  bool Exists(const std::string& path) override { return At(path).Exists(path); }
  int64_t FileSize(const std::string& path) override { return At(path).FileSize(path); }
  FileStatus Status(const std::string& path) override { return At(path).Status(path); }
  std::vector<std::string> Glob(const std::string& pattern) override {
    return At(pattern).Glob(pattern);
  }
  std::unique_ptr<PageFile> OpenPages(const std::string& path, PageMode mode,
                                      bool direct) override {
    return At(path).OpenPages(path, mode, direct);
  }
  std::unique_ptr<BatchReader> NewBatchReader(const BatchReaderOptions& options) override {
    return outside_.NewBatchReader(options);
  }
  void MakeDirectory(const std::string& path) override { At(path).MakeDirectory(path); }
  void RemoveDirectory(const std::string& path) override { At(path).RemoveDirectory(path); }
  bool IsDirectory(const std::string& path) override { return At(path).IsDirectory(path); }
  std::vector<std::string> List(const std::string& path) override { return At(path).List(path); }
  void SyncDirectory(const std::string& path) override { At(path).SyncDirectory(path); }
  void Link(const std::string& from, const std::string& to) override { At(to).Link(from, to); }
  std::unique_ptr<FileLock> Lock(const std::string& path) override { return At(path).Lock(path); }
  std::unique_ptr<FileLock> TryLockDirectory(const std::string& path, LockMode mode) override {
    return At(path).TryLockDirectory(path, mode);
  }

 private:
  Env& At(const std::string& path) { return path.starts_with(dir_) ? inside_ : outside_; }

  Env& outside_;
  Env& inside_;
  const std::string dir_;
};

}  // namespace terrace
