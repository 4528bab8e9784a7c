// A temporary directory for tests of FaultEnv, and looks at what is really in it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/error.h"

namespace terrace {

class TestTree {
 public:
  TestTree() {
    std::string pattern = std::filesystem::temp_directory_path() / "fault_XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~TestTree() { std::filesystem::remove_all(dir_); }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;

  void Clear() {
    std::filesystem::remove_all(dir_);
    PosixEnv().MakeDirectory(dir_);
  }
  // Makes a durable file.
  void Put(const std::string& name, std::string_view contents) const {
    WriteFileAtomically(PosixEnv(), Path(name), contents);
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::string Read(const std::string& name) const { return ReadWholeFile(PosixEnv(), Path(name)); }
  std::vector<std::string> Names() const { return PosixEnv().List(dir_); }

  static void Write(PageFile& file, uint64_t offset, const std::string& bytes) {
    file.Write(offset, bytes.data(), bytes.size());
  }
  // The text of the Error(kIo) that f throws, else nothing.
  template <typename F>
  static std::string ErrorOf(const F& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.code() == ErrorCode::kIo ? e.what() : "";
    }
    return "";
  }

 protected:
  std::string dir_;
};

}  // namespace terrace
