#include "base/env.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace terrace {

void SequentialFile::Skip(uint64_t size) {
  char buffer[1 << 16];
  while (size > 0) {
    const size_t n = Read(buffer, std::min<uint64_t>(size, sizeof(buffer)));
    if (n == 0) return;
    size -= n;
  }
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

void RemoveTree(Env& env, const std::string& path) {
  for (const std::string& name : env.List(path)) {
    const std::string inner = path + "/" + name;
    if (env.IsDirectory(inner))
      RemoveTree(env, inner);
    else
      env.Remove(inner);
  }
  env.RemoveDirectory(path);
}

}  // namespace terrace
