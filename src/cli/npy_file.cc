#include "cli/npy_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"

namespace terrace {

NpyFile::NpyFile(Env& env, const std::string& path, const std::string& type, int64_t columns)
    : env_(env),
      path_(path),
      temporary_(fmt::format("{}.tmp{}", path, getpid())),
      type_(type),
      columns_(columns),
      file_(env.OpenPages(temporary_, PageMode::kCreate, false)) {}

NpyFile::~NpyFile() {
  if (committed_) return;
  try {
    env_.Remove(temporary_);
  } catch (const Error&) {  // the failure that led here is the one to report
  }
}

void NpyFile::Append(const void* data, size_t size) {
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void NpyFile::Flush() {
  if (!buffer_.empty()) file_->Write(written_, buffer_.data(), buffer_.size());
  written_ += buffer_.size();
  buffer_.clear();
}

void NpyFile::Commit(int64_t rows) {
  Flush();
  const std::string shape =
      columns_ == 0 ? fmt::format("({},)", rows) : fmt::format("({}, {})", rows, columns_);
  constexpr size_t kText = kHeaderBytes - 10;  // behind the magic, the version and this length
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(kText & 0xff);
  header += static_cast<char>(kText >> 8);
  header += fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", type_, shape);
  TERRACE_CHECK(header.size() < kHeaderBytes);
  header.resize(kHeaderBytes - 1, ' ');
  header += '\n';
  file_->Write(0, header.data(), header.size());
  file_->Sync();
  env_.Rename(temporary_, path_);
  committed_ = true;
}

}  // namespace terrace
