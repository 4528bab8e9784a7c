// A .npy file (numpy's format, version 1.0) that appears whole or not at all.
//
// Its rows come one after another, and how many there are is known at the end. One thread. Throws
// Error(kIo).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/env.h"

namespace terrace {

class NpyFile {
 public:
  // `type` is numpy's, as Python writes it: '<f4' with its quotes, or a list of named fields.
  // `columns` 0: an array of one dimension.
  NpyFile(Env& env, const std::string& path, const std::string& type, int64_t columns);
  ~NpyFile();  // without Commit: nothing is left
  NpyFile(const NpyFile&) = delete;
  NpyFile& operator=(const NpyFile&) = delete;

  void Append(const void* data, size_t size);
  void Commit(int64_t rows);

 private:
  static constexpr size_t kHeaderBytes = 192;  // of 64 each, so that the numbers are aligned
  static constexpr size_t kBufferBytes = 1 << 20;

  void Flush();

  Env& env_;
  const std::string path_, temporary_, type_;
  const int64_t columns_;
  std::unique_ptr<PageFile> file_;
  std::string buffer_;
  uint64_t written_ = kHeaderBytes;
  bool committed_ = false;
};

}  // namespace terrace
