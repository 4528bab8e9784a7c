// A directory for one test, removed with all that is in it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace terrace {

class TestDir {
 public:
  // In memory, where there is such a file system: a store syncs often, which is slow on a disk.
  enum Place { kMemory, kDisk };
  explicit TestDir(Place place = kMemory) {
    const bool memory = place == kMemory && access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent =
        memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = parent / "terrace_test_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TestDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  const std::string& path() const { return path_; }

  // Of all files in a directory below; a store may remove some of them meanwhile.
  int64_t FileBytes(const std::string& below = "") const {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + "/" + below)) {
      std::error_code gone;
      const uintmax_t size = entry.file_size(gone);
      if (!gone) bytes += static_cast<int64_t>(size);
    }
    return bytes;
  }

 private:
  std::string path_;
};

}  // namespace terrace
