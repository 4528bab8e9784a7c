#include "base/fault_env.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/posix_io.h"

namespace terrace {

class FaultEnv::Reader : public SequentialFile {
 public:
  Reader(FaultEnv* env, std::string path, std::unique_ptr<SequentialFile> file)
      : env_(env), path_(std::move(path)), file_(std::move(file)) {}
  size_t Read(void* buffer, size_t size) override {
    env_->StepAlone(kRead, path_, "read");
    return file_->Read(buffer, size);
  }
  void Skip(uint64_t size) override {
    env_->StepAlone(kRead, path_, "read");
    file_->Skip(size);
  }

 private:
  FaultEnv* const env_;
  const std::string path_;
  const std::unique_ptr<SequentialFile> file_;
};

class FaultEnv::Writer : public WritableFile {
 public:
  Writer(FaultEnv* env, std::string path, std::unique_ptr<WritableFile> file)
      : env_(env),
        path_(std::move(path)),
        file_(std::move(file)),
        fd_(open(path_.c_str(), O_RDWR | O_CLOEXEC)) {}

  void Append(std::string_view data) override {
    MutexLock lock(&env_->mu_);
    int error = 0;
    const size_t size = env_->BytesToWrite(path_, data.size(), 1, &error);
    env_->journal_.WillWrite(fd_.get(), written_, size);
    file_->Append(data.substr(0, size));
    written_ += size;
    if (error != 0) FailIo(path_, "write", error);
  }

  void Close() override {
    MutexLock lock(&env_->mu_);
    env_->ThrowIfCrashed(path_);
    if (env_->Due(kSync, path_)) {
      env_->journal_.SyncFailed(fd_.get());
      FailIo(path_, "sync", env_->fault_.error);
    }
    file_->Close();
    env_->journal_.Synced(fd_.get());
  }

 private:
  FaultEnv* const env_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
  const Descriptor fd_;  // for the journal
  uint64_t written_ = 0;
};

class FaultEnv::Pages : public PageFile {
 public:
  Pages(FaultEnv* env, std::unique_ptr<PageFile> file) : env_(env), file_(std::move(file)) {}

  void Read(uint64_t offset, void* buffer, size_t size) override {
    env_->StepAlone(kRead, path(), fmt::format("read {} bytes at {}", size, offset));
    file_->Read(offset, buffer, size);
  }

  void Write(uint64_t offset, const void* data, size_t size) override {
    MutexLock lock(&env_->mu_);
    int error = 0;
    const size_t part = env_->BytesToWrite(path(), size, 512, &error);
    env_->journal_.WillWrite(descriptor(), offset, part);
    if (error == 0) return file_->Write(offset, data, size);
    // A part may be less than direct IO can write.
    if (part > 0 && pwrite(Reopen(descriptor()).get(), data, part, static_cast<off_t>(offset)) < 0)
      error = errno;
    FailWrite(path(), offset, size, error);
  }

  void Sync() override {
    MutexLock lock(&env_->mu_);
    env_->ThrowIfCrashed(path());
    if (env_->Due(kSync, path())) {
      env_->journal_.SyncFailed(descriptor());
      FailIo(path(), "sync", env_->fault_.error);
    }
    file_->Sync();
    env_->journal_.Synced(descriptor());
  }

  void Truncate(uint64_t size) override {
    MutexLock lock(&env_->mu_);
    env_->Step(kTruncate, path(), "truncate");
    env_->journal_.WillTruncate(descriptor(), size);
    file_->Truncate(size);
  }

  uint64_t Size() override {
    MutexLock lock(&env_->mu_);
    env_->ThrowIfCrashed(path());
    return file_->Size();
  }

  const std::string& path() const override { return file_->path(); }
  bool direct() const override { return file_->direct(); }
  int descriptor() const override { return file_->descriptor(); }
  PageFile* file() const { return file_.get(); }

 private:
  FaultEnv* const env_;
  const std::unique_ptr<PageFile> file_;
};

class FaultEnv::Batch : public BatchReader {
 public:
  Batch(FaultEnv* env, std::unique_ptr<BatchReader> reader)
      : env_(env), reader_(std::move(reader)) {}
  size_t max_read() const override { return reader_->max_read(); }
  const char* name() const override { return reader_->name(); }

  // Of a batch with a read that fails, those before it are done.
  void Read(std::span<const PageRead> reads, const Done& done) override {
    std::vector<PageRead> good;
    int error = 0;
    {
      MutexLock lock(&env_->mu_);
      for (const PageRead& read : reads) {
        env_->ThrowIfCrashed(read.file->path());
        if (env_->Due(kBatchRead, read.file->path())) {
          error = env_->fault_.error;
          break;
        }
        Pages* const pages = dynamic_cast<Pages*>(read.file);
        TERRACE_CHECK(pages != nullptr);  // a file of this Env
        good.push_back({pages->file(), read.offset, read.size});
      }
    }
    reader_->Read(good, done);
    if (error == 0) return;
    const PageRead& bad = reads[good.size()];
    FailRead(bad.file->path(), bad.offset, bad.size, error);
  }

 private:
  FaultEnv* const env_;
  const std::unique_ptr<BatchReader> reader_;
};

class FaultEnv::Held : public FileLock {
 public:
  explicit Held(std::shared_ptr<std::unique_ptr<FileLock>> lock) : lock_(std::move(lock)) {}

 private:
  const std::shared_ptr<std::unique_ptr<FileLock>> lock_;  // emptied by a crash
};

void FaultEnv::Inject(const Fault& fault) {
  MutexLock lock(&mu_);
  fault_ = fault;
  until_fault_ = fault.at;
}

bool FaultEnv::failed() const { return !failure().empty(); }

std::string FaultEnv::failure() const {
  MutexLock lock(&mu_);
  return failure_;
}

int64_t FaultEnv::operations(uint32_t kinds) const {
  MutexLock lock(&mu_);
  int64_t sum = 0;
  for (int i = 0; i < kKinds; ++i)
    if ((kinds >> i & 1) != 0) sum += counts_[i];
  return sum;
}

void FaultEnv::SetSpace(int64_t bytes) {
  MutexLock lock(&mu_);
  space_ = bytes;
}

void FaultEnv::Crash(uint64_t seed) {
  MutexLock lock(&mu_);
  TERRACE_CHECK(!crashed_);
  crashed_ = true;
  journal_.Crash(seed);
  for (const auto& held : locks_)
    if (const auto locked = held.lock()) locked->reset();
}

void FaultEnv::ThrowIfCrashed(const std::string& path) const {
  if (crashed_) throw Error(ErrorCode::kIo, path + ": the power was cut; open it with another Env");
}

bool FaultEnv::Due(Kind kind, const std::string& path) {
  const int index = std::countr_zero(static_cast<uint32_t>(kind));
  TERRACE_CHECK(index < kKinds);
  ++counts_[index];
  if ((fault_.kinds & kind) == 0 || until_fault_ < 0) return false;
  if (until_fault_ > 0) {
    --until_fault_;
    return false;
  }
  if (!fault_.lasting) until_fault_ = -1;
  static constexpr const char* kNames[kKinds] = {
      "read",   "batch read", "write", "sync",           "truncate",       "open",    "create",
      "rename", "remove",     "link",  "make directory", "sync directory", "inspect", "lock"};
  if (failure_.empty()) failure_ = fmt::format("{} of {}", kNames[index], path);
  return true;
}

void FaultEnv::Step(Kind kind, const std::string& path, std::string_view call) {
  ThrowIfCrashed(path);
  if (Due(kind, path)) FailIo(path, call, fault_.error);
}

void FaultEnv::StepAlone(Kind kind, const std::string& path, std::string_view call) {
  MutexLock lock(&mu_);
  Step(kind, path, call);
}

size_t FaultEnv::BytesToWrite(const std::string& path, size_t size, size_t unit, int* error) {
  ThrowIfCrashed(path);
  size_t reach = size;
  if (Due(kWrite, path)) {
    *error = fault_.error;
    reach = fault_.short_write ? size / 2 / unit * unit : 0;
  }
  if (space_ >= 0) {
    if (reach > static_cast<size_t>(space_)) {
      *error = ENOSPC;
      reach = static_cast<size_t>(space_) / unit * unit;
      if (failure_.empty()) failure_ = "write of " + path + " on a full disk";
    }
    space_ -= static_cast<int64_t>(reach);
  }
  return reach;
}

template <typename Create>
auto FaultEnv::CreateFile(const std::string& path, const Create& create) {
  const Descriptor old(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (old.valid()) {
    journal_.WillTruncate(old.get(), 0);
    return create();
  }
  FaultJournal::Names names = journal_.Remember({path});
  auto file = create();
  journal_.Changed(std::move(names));
  return file;
}

std::unique_ptr<SequentialFile> FaultEnv::OpenForRead(const std::string& path) {
  StepAlone(kOpen, path, "open");
  return std::make_unique<Reader>(this, path, base_.OpenForRead(path));
}

std::unique_ptr<WritableFile> FaultEnv::OpenForWrite(const std::string& path) {
  MutexLock lock(&mu_);
  Step(kCreate, path, "create");
  auto file = CreateFile(path, [&] { return base_.OpenForWrite(path); });
  return std::make_unique<Writer>(this, path, std::move(file));
}

void FaultEnv::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(&mu_);
  Step(kRename, to, "rename a finished file to");
  FaultJournal::Names names = journal_.Remember({from, to});
  base_.Rename(from, to);
  journal_.Changed(std::move(names));
  if (std::filesystem::is_directory(to)) journal_.MovedDirectory(from, to);
}

void FaultEnv::Remove(const std::string& path) {
  MutexLock lock(&mu_);
  Step(kRemove, path, "remove");
  FaultJournal::Names names = journal_.Remember({path});
  base_.Remove(path);
  journal_.Changed(std::move(names));
}

bool FaultEnv::Exists(const std::string& path) {
  MutexLock lock(&mu_);
  ThrowIfCrashed(path);
  return base_.Exists(path);
}

int64_t FaultEnv::FileSize(const std::string& path) {
  StepAlone(kInspect, path, "find");
  return base_.FileSize(path);
}

FileStatus FaultEnv::Status(const std::string& path) {
  StepAlone(kInspect, path, "find");
  return base_.Status(path);
}

std::vector<std::string> FaultEnv::Glob(const std::string& pattern) {
  MutexLock lock(&mu_);
  ThrowIfCrashed(pattern);
  return base_.Glob(pattern);
}

std::unique_ptr<PageFile> FaultEnv::OpenPages(const std::string& path, PageMode mode, bool direct) {
  MutexLock lock(&mu_);
  const auto open_pages = [&] { return base_.OpenPages(path, mode, direct); };
  if (mode == PageMode::kRead) {
    Step(kOpen, path, "open");
    return std::make_unique<Pages>(this, open_pages());
  }
  Step(kCreate, path, "create");
  return std::make_unique<Pages>(this, CreateFile(path, open_pages));
}

std::unique_ptr<BatchReader> FaultEnv::NewBatchReader(const BatchReaderOptions& options) {
  return std::make_unique<Batch>(this, base_.NewBatchReader(options));
}

void FaultEnv::MakeDirectory(const std::string& path) {
  MutexLock lock(&mu_);
  Step(kMakeDirectory, path, "create the directory");
  std::vector<FaultJournal::Names> made;  // innermost first
  std::filesystem::path at = std::filesystem::path(path).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  for (; !at.empty() && !std::filesystem::exists(at); at = at.parent_path())
    made.push_back(journal_.Remember({at}));
  base_.MakeDirectory(path);
  for (; !made.empty(); made.pop_back()) journal_.Changed(std::move(made.back()));
}

void FaultEnv::RemoveDirectory(const std::string& path) {
  MutexLock lock(&mu_);
  Step(kRemove, path, "remove the directory");
  FaultJournal::Names names = journal_.Remember({path});
  base_.RemoveDirectory(path);
  journal_.Changed(std::move(names));
}

bool FaultEnv::IsDirectory(const std::string& path) {
  MutexLock lock(&mu_);
  ThrowIfCrashed(path);
  return base_.IsDirectory(path);
}

std::vector<std::string> FaultEnv::List(const std::string& path) {
  StepAlone(kInspect, path, "list the directory");
  return base_.List(path);
}

void FaultEnv::SyncDirectory(const std::string& path) {
  MutexLock lock(&mu_);
  Step(kSyncDirectory, path, "sync the directory");
  base_.SyncDirectory(path);
  journal_.SyncedDirectory(path);
}

void FaultEnv::Link(const std::string& from, const std::string& to) {
  MutexLock lock(&mu_);
  Step(kLink, to, fmt::format("link {} to", from));
  FaultJournal::Names names = journal_.Remember({to});
  base_.Link(from, to);
  journal_.Changed(std::move(names));
}

std::unique_ptr<FileLock> FaultEnv::Lock(const std::string& path) {
  MutexLock lock(&mu_);
  Step(kLock, path, "lock");
  return Keep(base_.Lock(path));
}

std::unique_ptr<FileLock> FaultEnv::TryLockDirectory(const std::string& path, LockMode mode) {
  MutexLock lock(&mu_);
  Step(kLock, path, "open the directory");
  std::unique_ptr<FileLock> held = base_.TryLockDirectory(path, mode);
  return held == nullptr ? nullptr : Keep(std::move(held));
}

std::unique_ptr<FileLock> FaultEnv::Keep(std::unique_ptr<FileLock> lock) {
  auto held = std::make_shared<std::unique_ptr<FileLock>>(std::move(lock));
  locks_.push_back(held);
  return std::make_unique<Held>(std::move(held));
}

}  // namespace terrace
