// Files in memory, for tests: reads can be made short or fail. A file stays as long as it is open.
#pragma once

#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/error.h"

namespace terrace {

// Set up before it is used; then safe from several threads as long as nobody writes.
class MemoryEnv : public Env {
 public:
  std::map<std::string, std::string> files;              // by path; "-" is standard input
  size_t max_read = std::numeric_limits<size_t>::max();  // bytes that one Read returns at most
  int64_t fail_after = -1;  // every file fails after so many bytes; -1: none does

  std::unique_ptr<SequentialFile> OpenForRead(const std::string& path) override {
    return std::make_unique<Reader>(this, path, Find(path));
  }
  std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) override {
    files[path].clear();
    return std::make_unique<Writer>(&files[path]);
  }
  void Rename(const std::string& from, const std::string& to) override {
    files[to] = Find(from);
    files.erase(from);
  }
  void Remove(const std::string& path) override { files.erase(path); }
  bool Exists(const std::string& path) override {
    return files.contains(path) || path == "." || path == "/";
  }
  int64_t FileSize(const std::string& path) override {
    return path == "-" ? -1 : static_cast<int64_t>(Find(path).size());
  }
  FileStatus Status(const std::string& path) override { return {0, 0, 1, FileSize(path)}; }
  std::vector<std::string> Glob(const std::string& pattern) override {
    if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
    std::vector<std::string> paths;
    for (const auto& [path, unused] : files)
      if (fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0) paths.push_back(path);
    return paths;
  }

  // There are no directories: a path is just a name. Nor are there locks.
  void MakeDirectory(const std::string&) override {}
  void SyncDirectory(const std::string&) override {}
  void RemoveDirectory(const std::string&) override {}
  bool IsDirectory(const std::string&) override { return false; }
  std::vector<std::string> List(const std::string& path) override {
    std::vector<std::string> names;
    for (const std::string& found : Glob(path + "/*"))
      names.push_back(found.substr(path.size() + 1));
    return names;
  }
  void Link(const std::string& from, const std::string& to) override { files[to] = Find(from); }
  std::unique_ptr<FileLock> Lock(const std::string&) override {
    return std::make_unique<FileLock>();
  }
  std::unique_ptr<FileLock> TryLockDirectory(const std::string&, LockMode) override {
    return std::make_unique<FileLock>();
  }

  std::unique_ptr<PageFile> OpenPages(const std::string& path, PageMode mode, bool) override {
    if (mode == PageMode::kCreate) files[path].clear();
    Find(path);
    return std::make_unique<Pages>(&files[path], path);
  }
  std::unique_ptr<BatchReader> NewBatchReader(const BatchReaderOptions& options) override {
    return std::make_unique<PageReader>(options.max_read);
  }

 private:
  class Reader : public SequentialFile {
   public:
    Reader(MemoryEnv* env, std::string path, std::string_view contents)
        : env_(env), path_(std::move(path)), contents_(contents) {}
    size_t Read(void* buffer, size_t size) override {
      if (env_->fail_after >= 0 && at_ >= static_cast<size_t>(env_->fail_after))
        throw Error(ErrorCode::kIo, path_ + ": cannot read: Input/output error");
      size = std::min({size, env_->max_read, contents_.size() - at_});
      if (env_->fail_after >= 0) size = std::min(size, static_cast<size_t>(env_->fail_after) - at_);
      std::memcpy(buffer, contents_.data() + at_, size);
      at_ += size;
      return size;
    }
    void Skip(uint64_t size) override { at_ += std::min<uint64_t>(size, contents_.size() - at_); }

   private:
    MemoryEnv* const env_;
    const std::string path_;
    const std::string_view contents_;
    size_t at_ = 0;
  };

  class Writer : public WritableFile {
   public:
    explicit Writer(std::string* contents) : contents_(contents) {}
    void Append(std::string_view data) override { contents_->append(data); }
    void Close() override {}

   private:
    std::string* const contents_;
  };

  class Pages : public PageFile {
   public:
    Pages(std::string* contents, std::string path) : contents_(*contents), path_(std::move(path)) {}
    void Read(uint64_t offset, void* buffer, size_t size) override {
      if (offset > contents_.size() || size > contents_.size() - offset)
        throw Error(ErrorCode::kIo, path_ + ": cannot read: the file ends");
      std::memcpy(buffer, contents_.data() + offset, size);
    }
    void Write(uint64_t offset, const void* data, size_t size) override {
      if (contents_.size() < offset + size) contents_.resize(offset + size);
      std::memcpy(contents_.data() + offset, data, size);
    }
    void Sync() override {}
    void Truncate(uint64_t size) override { contents_.resize(size); }
    uint64_t Size() override { return contents_.size(); }
    const std::string& path() const override { return path_; }
    bool direct() const override { return false; }
    int descriptor() const override { return -1; }

   private:
    std::string& contents_;
    const std::string path_;
  };

  class PageReader : public BatchReader {
   public:
    explicit PageReader(size_t max_read) : buffer_(max_read) {}
    size_t max_read() const override { return buffer_.size(); }
    const char* name() const override { return "memory"; }
    void Read(std::span<const PageRead> reads, const Done& done) override {
      for (size_t i = 0; i < reads.size(); ++i) {
        reads[i].file->Read(reads[i].offset, buffer_.data(), reads[i].size);
        done(i, buffer_.data());
      }
    }

   private:
    std::vector<std::byte> buffer_;
  };

  const std::string& Find(const std::string& path) const {
    const auto found = files.find(path);
    if (found == files.end())
      throw Error(ErrorCode::kIo, path + ": cannot open: No such file or directory");
    return found->second;
  }
};

}  // namespace terrace
