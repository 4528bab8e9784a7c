// A directory for one test, removed with all that is in it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace terrace {

class TestDir {
 public:
  TestDir() {
    std::string name = std::filesystem::temp_directory_path() / "terrace_test_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TestDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace terrace
